"""Parameters of a PyTorch model that was built before the recording began."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64, U8, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording


def older_parameters(recording: Recording, role: U8) -> Mask:
    """Mark the rows of unknown role that are older than the trace and match the gradients by size, one to one.

    Of each size there must be as many of them, live as long as gradients are made, as gradients without a parameter
    that is known. If there are more, some may be optimizer state or gradients of earlier steps: all stay unknown.
    """
    rows = recording.allocations
    gradient = role == Role.GRADIENT
    nothing: Mask = np.zeros(len(rows), dtype=bool)
    if not gradient.any():
        return nothing
    stays = rows.end > int(rows.start[gradient].max())
    older = (rows.start < 0) & stays & (role == Role.UNKNOWN)
    sizes, size = np.unique(rows.requested, return_inverse=True)
    wanted = _most_at_once(size[gradient], rows.start[gradient], rows.end[gradient], len(sizes))
    wanted -= np.bincount(size[stays & (role == Role.PARAMETER)], minlength=len(sizes))
    matches = np.bincount(size[older], minlength=len(sizes)) == wanted
    return np.asarray(older & matches[size])


def _most_at_once(size: I64, start: I64, end: I64, sizes: int) -> I64:
    """Return how many rows of each size are live at once at most."""
    change = np.repeat(np.array([1, -1]), len(size))
    group, position = np.r_[size, size], np.r_[start, end]
    order = np.lexsort((change, position, group))  # what ends makes room for what begins
    live, group = np.cumsum(change[order]), group[order]  # each group ends at 0
    most = np.zeros(sizes, dtype=np.int64)
    np.maximum.at(most, group, live)
    return most
