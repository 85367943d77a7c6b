"""Roles of a PyTorch snapshot's tensors, read from the profiler's memory timeline of the same run."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

# The profiler and the allocator timestamp an allocation at two points of the same call, microseconds apart.
NEAR_NS = 1_000_000


@memoize
def recorded_roles(recording: Recording) -> U8:
    """Return the Role of each row of `allocations` as the source records it, or else a timeline of the same run.

    An allocation matches the timeline's allocation of the same size that is nearest in time, within a millisecond.
    """
    if not recording.timelines:
        return recording.allocations.role
    role = recording.allocations.role.copy()
    for timeline in recording.timelines:
        match = _match_rows(recording, timeline)
        matched = (match >= 0) & (role == Role.UNKNOWN)
        role[matched] = timeline.allocations.role[match[matched]]
    return role


def _match_rows(snapshot: Recording, timeline: Recording) -> I64:
    """Return the matching row of the timeline for each row of the snapshot, -1 for none."""
    found = np.full(len(snapshot.allocations), -1)
    row, time = _allocation_times(snapshot)
    other, other_time = _allocation_times(timeline)
    if not len(row) or not len(other):
        return found
    size, other_size = snapshot.allocations.size[row], timeline.allocations.size[other]
    order = np.lexsort((other_time, other_size))
    other, other_time, other_size = other[order], other_time[order], other_size[order]
    # One sort key of size, then time. The times of one run are close together, so the key rarely overflows.
    first = min(int(time.min()), int(other_time.min()))
    sizes, code = np.unique(np.r_[other_size, size], return_inverse=True)
    width = max(int(time.max()), int(other_time.max())) - first + 1
    if width > 2**62 // max(len(sizes), 1):
        return found
    keys, wanted = code[: len(other)] * width + other_time - first, code[len(other) :] * width + time - first
    after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(keys[before] - wanted) < np.abs(keys[after] - wanted), before, after)
    close = (other_size[nearest] == size) & (np.abs(other_time[nearest] - time) <= NEAR_NS)
    found[row[close]] = other[nearest[close]]
    return found


def _allocation_times(recording: Recording) -> tuple[I64, I64]:
    """Return the rows that were allocated in the recording, and their times in nanoseconds since 1970."""
    clock, capture_info = recording.clock, recording.capture_info
    if clock is None or capture_info is None or capture_info.time_ns is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    row = np.flatnonzero(recording.allocations.start >= 0)
    return row, clock[recording.allocations.start[row]] + capture_info.time_ns
