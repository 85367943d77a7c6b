"""A memory timeline of PyTorch's profiler lends its categories to the snapshot of the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RecordingKind, Role
from tb_memplugin.model.recording import Recording

# The profiler and the allocator write one allocation's time at two places of the same call: microseconds apart.
NEAR_NS = 1_000_000

_cache: WeakKeyDictionary[Recording, tuple[list[Recording], Recording]] = WeakKeyDictionary()


def with_categories(recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings of a run; each snapshot among them with the roles that its timelines tell.

    An allocation is the one of the timeline that has its size and lies nearest in time, within a millisecond. The same
    snapshot and timelines give the same recording.
    """
    timelines = [r for r in recordings if r.kind is RecordingKind.TORCH_TIMELINE and r.taken is not None]
    if not timelines:
        return list(recordings)
    return [
        _add_categories(r, [timeline for timeline in timelines if timeline.run == r.run])
        if r.kind.has_tensor_stacks
        else r
        for r in recordings
    ]


def _add_categories(snapshot: Recording, timelines: list[Recording]) -> Recording:
    known = _cache.get(snapshot)
    if known is not None and len(known[0]) == len(timelines) and all(map(_is, known[0], timelines)):
        return known[1]
    role = snapshot.allocations.role.copy()
    for timeline in timelines:
        found = _match_rows(snapshot, timeline)
        told = (found >= 0) & (role == Role.UNKNOWN)
        role[told] = timeline.allocations.role[found[told]]
    # Where none is of the same run's time, the snapshot stays what it is.
    lent = snapshot
    if (role != snapshot.allocations.role).any():
        lent = replace(snapshot, allocations=replace(snapshot.allocations, role=role))
    _cache[snapshot] = timelines, lent
    return lent


def _is(one: Recording, other: Recording) -> bool:
    return one is other


def _match_rows(snapshot: Recording, timeline: Recording) -> I64:
    """Per row of the snapshot the row of the timeline that it is, -1 where there is none."""
    found = np.full(len(snapshot.allocations), -1)
    row, time = _allocation_times(snapshot)
    other, other_time = _allocation_times(timeline)
    if not len(row) or not len(other):
        return found
    size, other_size = snapshot.allocations.size[row], timeline.allocations.size[other]
    order = np.lexsort((other_time, other_size))
    other, other_time, other_size = other[order], other_time[order], other_size[order]
    # By size, then by time, as one number: times are of one run, and so lie close together.
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
    """(rows that begin in the recording; when, in nanoseconds since 1970)."""
    clock, taken = recording.clock, recording.taken
    if clock is None or taken is None or taken.time_ns is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    row = np.flatnonzero(recording.allocations.start >= 0)
    return row, clock[recording.allocations.start[row]] + taken.time_ns
