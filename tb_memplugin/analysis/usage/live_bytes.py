"""Live bytes over the axis, and their peak."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis, RegionKind
from tb_memplugin.model.recording import Recording


class Usage(NamedTuple):
    """Bytes at each position of the axis: the charges of the live rows, and the same without their padding."""

    live: I64
    unpadded: I64


class Peak(NamedTuple):
    bytes: int
    position: int  # the first position where live is largest


class Buckets(NamedTuple):
    """A curve at a lower resolution: extremes of positions `position[i]` up to, not including, `position[i + 1]`."""

    position: I64
    live_max: I64
    live_min: I64
    unpadded_max: I64
    unpadded_min: I64


@memoize
def usage(recording: Recording) -> Usage:
    """A sweep over starts and ends: O(rows + positions). What an allocator says of itself comes before it."""
    rows = recording.allocations
    padding = np.where(rows.charge > 0, rows.size - rows.requested, 0)
    if recording.reported is not None:
        live = recording.reported.in_use + recording.reported.reserved
    else:
        live = explained_bytes(recording)
    return Usage(live, live - _sum_live(rows.start, rows.end, padding, recording.length))


@memoize
def explained_bytes(recording: Recording) -> I64:
    """Bytes at each position that live rows account for."""
    rows = recording.allocations
    return _sum_live(rows.start, rows.end, rows.charge, recording.length)


def _sum_live(start: I64, end: I64, amount: I64, length: int) -> I64:
    """At each position the sum of the amounts of rows with start <= position < end."""
    if not length:
        return np.empty(0, dtype=np.int64)
    # Sums of bytes stay exact in float64 up to 2**53, which is 8 PiB; bincount knows no int64.
    change = np.bincount(np.clip(start, 0, length), amount, length + 1)
    change -= np.bincount(np.clip(end, 0, length), amount, length + 1)
    total: I64 = np.cumsum(change[:length]).astype(np.int64)
    return total


@memoize
def peak(recording: Recording) -> Peak:
    live = usage(recording).live
    if not len(live):
        return Peak(0, 0)
    position = int(np.argmax(live))
    return Peak(int(live[position]), position)


@memoize
def reserved_bytes(recording: Recording) -> int:
    """What the program holds, or the most an allocator held; thread-locals are on the threads' stacks, not in it."""
    regions = recording.regions
    if recording.held is not None:
        return int(recording.held.max(initial=0))
    if recording.reported is not None and (recording.axis is not Axis.INSTANT or not len(regions)):
        return peak(recording).bytes
    if not len(regions):  # all that is known is what was live
        return peak(recording).bytes
    return int(regions.size[(regions.kind & RegionKind.THREAD_LOCAL) == 0].sum())


def buckets(curve: Usage, start: int, end: int, count: int) -> Buckets:
    """At most `count` buckets of equal width over [start, end): no peak and no valley is lost in any of them."""
    start, end = max(start, 0), min(end, len(curve.live))
    width = max(1, -(-(end - start) // max(count, 1)))
    position = np.arange(start, end, width)
    if not len(position):
        return Buckets(position, position, position, position, position)
    extremes = [
        reduce.reduceat(column[:end], position)
        for column in (curve.live, curve.unpadded)
        for reduce in (np.maximum, np.minimum)
    ]
    return Buckets(position, *extremes)
