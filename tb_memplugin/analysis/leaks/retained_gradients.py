"""What a PyTorch training loop carries from one iteration into the next: gradients that nothing cleared."""

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
    """Of each iteration that begins after a step of the optimizer: one row per iteration, in bytes.

    An iteration begins with the first activation that is made after the step.
    """

    position: I64  # where it begins
    gradients: I64  # live there, all made before
    state: I64  # the optimizer's, live there


@memoize
def retained_gradients(recording: Recording) -> RetainedGradients:
    rows, role = recording.allocations, roles(recording)
    _, ends = optimizer_steps(recording)
    made = np.sort(rows.start[(role == Role.ACTIVATION) & (rows.start >= 0)])
    at = np.searchsorted(made, ends, side="right")
    begins = np.unique(made[at[at < len(made)]])
    return RetainedGradients(
        begins, *(_live_bytes(recording, role == wanted, begins) for wanted in (Role.GRADIENT, Role.OPTIMIZER_STATE))
    )


def possible_state_bytes(recording: Recording, position: int) -> int:
    """Bytes live at a position that are older than the recording, of no known role, each as large as a state is.

    An optimizer's state has the shape of its parameter, and so has a gradient. Which of them a block is that was made
    before the recording, no event tells.
    """
    rows, role = recording.allocations, roles(recording)
    sizes = np.unique(rows.requested[role == Role.OPTIMIZER_STATE])
    old = (rows.start < 0) & (position < rows.end) & (role == Role.UNKNOWN)
    return int(rows.charge[old & np.isin(rows.requested, sizes)].sum())


def _live_bytes(recording: Recording, which: np.ndarray, positions: I64) -> I64:
    """Bytes of some rows that are live at each of the positions, and began before it."""
    rows, n = recording.allocations, recording.length
    born = np.bincount(np.clip(rows.start[which] + 1, 0, n), rows.charge[which], n + 1)
    gone = np.bincount(np.clip(rows.end[which], 0, n), rows.charge[which], n + 1)
    return np.asarray(np.cumsum(born - gone)[positions].astype(np.int64))
