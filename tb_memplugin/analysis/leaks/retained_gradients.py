"""Gradients that a PyTorch training loop retains from one iteration to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.torch_roles import optimizer_steps
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording


class RetainedGradients(NamedTuple):
    """Bytes at the beginning of each iteration that follows an optimizer step.

    An iteration begins with the first activation that is allocated after the step.
    """

    position: I64  # where the iteration begins
    gradients: I64  # live gradients, all allocated before
    state: I64  # live optimizer state


@memoize
def retained_gradients(recording: Recording) -> RetainedGradients:
    """Measure the gradients and optimizer state that are live at the beginning of each iteration."""
    rows, role = recording.allocations, roles(recording)
    _, ends = optimizer_steps(recording)
    made = np.sort(rows.start[(role == Role.ACTIVATION) & (rows.start >= 0)])
    at = np.searchsorted(made, ends, side="right")
    begins = np.unique(made[at[at < len(made)]])
    return RetainedGradients(
        begins, *(_live_bytes(recording, role == wanted, begins) for wanted in (Role.GRADIENT, Role.OPTIMIZER_STATE))
    )


def possible_state_bytes(recording: Recording, position: int) -> int:
    """Return the bytes of older live blocks that may be optimizer state: as large as some state, or as a gradient.

    Optimizer state and gradients both have the shape of their parameter. Events do not distinguish them for blocks
    allocated before the recording, unless they match the gradients one to one, as parameters alone do.
    """
    rows, role = recording.allocations, roles(recording)
    sizes = np.unique(rows.requested[np.isin(role, (Role.OPTIMIZER_STATE, Role.GRADIENT))])
    old = (rows.start < 0) & (position < rows.end) & (role == Role.UNKNOWN)
    return int(rows.charge[old & np.isin(rows.requested, sizes)].sum())


def _live_bytes(recording: Recording, which: np.ndarray, positions: I64) -> I64:
    """Return the bytes of the marked rows that are live at each position and were allocated before it."""
    rows, n = recording.allocations, recording.length
    born = np.bincount(np.clip(rows.start[which] + 1, 0, n), rows.charge[which], n + 1)
    gone = np.bincount(np.clip(rows.end[which], 0, n), rows.charge[which], n + 1)
    return np.asarray(np.cumsum(born - gone)[positions].astype(np.int64))
