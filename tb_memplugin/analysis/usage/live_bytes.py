"""Live bytes over the axis, and their peak."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize_outline
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis, RegionKind
from tb_memplugin.model.recording import Recording


class Usage(NamedTuple):
    """Live bytes at each position of the axis, with and without padding."""

    live: I64
    unpadded: I64


class Peak(NamedTuple):
    bytes: int
    position: int  # the first position where live is largest


class Buckets(NamedTuple):
    """Usage at a lower resolution: the extremes over positions `position[i] <= p < position[i + 1]`."""

    position: I64
    live_max: I64
    live_min: I64
    unpadded_max: I64
    unpadded_min: I64


@memoize_outline
def usage(recording: Recording) -> Usage:
    """Return the bytes that the allocator reports, or else the charges of the live rows. O(rows + positions)."""
    rows = recording.allocations
    padding = np.minimum(rows.size - rows.requested, rows.charge)  # a row may share a part of its bytes
    if recording.reported is not None:
        live = recording.reported.in_use + recording.reported.reserved
    else:
        live = explained_bytes(recording)
    return Usage(live, live - _sum_live(rows.start, rows.end, padding, recording.length))


@memoize_outline
def explained_bytes(recording: Recording) -> I64:
    """Return the sum of the live rows' charges at each position."""
    rows = recording.allocations
    return _sum_live(rows.start, rows.end, rows.charge, recording.length)


def unexplained_bytes(recording: Recording) -> I64:
    """Return the live bytes at each position that are in no row; negative where the rows have more."""
    return usage(recording).live - explained_bytes(recording)


def _sum_live(start: I64, end: I64, amount: I64, length: int) -> I64:
    """Return at each position the sum of the amounts of rows with start <= position < end."""
    if not length:
        return np.empty(0, dtype=np.int64)
    # bincount sums in float64, which is exact up to 2**53 bytes (8 PiB).
    change = np.bincount(np.clip(start, 0, length), amount, length + 1)
    change -= np.bincount(np.clip(end, 0, length), amount, length + 1)
    total: I64 = np.cumsum(change[:length]).astype(np.int64)
    return total


@memoize_outline
def peak(recording: Recording) -> Peak:
    live = usage(recording).live
    if not len(live):
        return Peak(0, 0)
    position = int(np.argmax(live))
    return Peak(int(live[position]), position)


@memoize_outline
def reserved_bytes(recording: Recording) -> int:
    """Return the bytes that the program requests, or the most an allocator reserved; thread-local buffers are excluded.

    Thread-local buffers lie on the threads' stacks.
    """
    regions = recording.regions
    if recording.reserved is not None:
        return int(recording.reserved.max(initial=0))
    if recording.reported is not None and (recording.axis is not Axis.INSTANT or not len(regions)):
        return peak(recording).bytes
    if not len(regions):  # only live bytes are known
        return peak(recording).bytes
    return int(regions.size[(regions.kind & RegionKind.THREAD_LOCAL) == 0].sum())


def buckets(values: Usage, start: int, end: int, count: int) -> Buckets:
    """Return at most `count` buckets of equal width over [start, end), each with its minimum and maximum."""
    start, end = max(start, 0), min(end, len(values.live))
    width = max(1, -(-(end - start) // max(count, 1)))
    position = np.arange(start, end, width)
    if not len(position):
        return Buckets(position, position, position, position, position)
    extremes = [
        reduce.reduceat(column[:end], position)
        for column in (values.live, values.unpadded)
        for reduce in (np.maximum, np.minimum)
    ]
    return Buckets(position, *extremes)
