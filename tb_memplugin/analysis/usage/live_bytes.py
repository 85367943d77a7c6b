"""Live bytes over the axis and their peak, an allocator's traffic, and contradictions between events."""

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize_outline
from tb_memplugin.model.arrays import I64, Mask, marked, sum_over_time
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Axis, RegionKind
from tb_memplugin.model.recording import Recording


class Usage(NamedTuple):
    """Live bytes at each position of the axis, with and without padding."""

    live: I64
    requested: I64


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
    return Usage(live, live - sum_over_time(recording.length, rows.start, rows.end, padding))


@memoize_outline
def explained_bytes(recording: Recording) -> I64:
    """Return the sum of the live rows' charges at each position."""
    rows = recording.allocations
    return sum_over_time(recording.length, rows.start, rows.end, rows.charge)


def unexplained_bytes(recording: Recording) -> I64:
    """Return the live bytes at each position that are in no row; negative if the rows exceed the live bytes."""
    return usage(recording).live - explained_bytes(recording)


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
    if not len(regions) or (recording.reported is not None and recording.axis is not Axis.INSTANT):
        return peak(recording).bytes  # without regions, only live bytes are known
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
        for column in (values.live, values.requested)
        for reduce in (np.maximum, np.minimum)
    ]
    return Buckets(position, *extremes)


class Traffic(NamedTuple):
    """Counts and bytes. Allocations and frees differ by memory that was live before the recording or never freed."""

    allocations: int
    allocated_bytes: int
    frees: int
    freed_bytes: int
    freed_before: int  # frees of allocations from before the recording
    freed_before_bytes: int
    live_before: int  # rows
    live_before_bytes: int
    never_freed: int
    never_freed_bytes: int


class StackCounts(NamedTuple):
    """The number of allocations and frees, and how many of them have a call stack."""

    allocations: int
    with_stack: int
    frees: int
    frees_with_stack: int


def traffic(recording: Recording) -> Traffic:
    """Count the allocations and frees of a recording, with their bytes."""
    rows = recording.allocations
    recorded, ended, freed = rows.start >= 0, rows.end < recording.length, _freed_rows(recording)

    def count_and_bytes(which: Mask) -> tuple[int, int]:
        return int(which.sum()), int(rows.size[which].sum())

    return Traffic(
        *count_and_bytes(recorded),
        *count_and_bytes(freed),
        *count_and_bytes(freed & ~recorded),
        *count_and_bytes(~recorded),
        *count_and_bytes(recorded & ~ended),
    )


def count_stacks(recording: Recording) -> StackCounts:
    """Count the allocations and frees that have a call stack."""
    rows, free_stack = recording.allocations, recording.free_stack
    recorded, freed = rows.start >= 0, _freed_rows(recording)
    with_stack = 0 if free_stack is None else int((free_stack[freed] >= 0).sum())
    return StackCounts(int(recorded.sum()), int((rows.stack[recorded] >= 0).sum()), int(freed.sum()), with_stack)


def _freed_rows(recording: Recording) -> Mask:
    rows = recording.allocations
    # An allocation at an address in use ends the one before it, without a free.
    opens = marked(recording.length + 1, rows.start[rows.start >= 0])
    return (rows.end < recording.length) & ~opens[rows.end]


# Caveats that put the figures of a recording in doubt, not only their origin.
IN_DOUBT = {
    CaveatCode.ADDRESS_TAKEN,
    CaveatCode.FREED_MORE,
    CaveatCode.IMPOSSIBLE_BYTES,
    CaveatCode.IMPOSSIBLE_SIZES,
    CaveatCode.INCONSISTENT_EVENTS,
    CaveatCode.IN_USE_DIFFERS,
    CaveatCode.MORE_THAN_IN_USE,
    CaveatCode.TOTAL_DIFFERS,
}
TEXT = "At the peak, live allocations add up to more than the bytes in use, so shares of the peak are unknown:"


def excess_bytes(recording: Recording) -> int:
    """Return the bytes by which the rows live at the peak exceed the allocator's bytes in use."""
    top = peak(recording)
    if recording.reported is None or not 0 <= top.position < recording.length:
        return 0
    return max(int(explained_bytes(recording)[top.position]) - top.bytes, 0)


def caveats(recording: Recording) -> tuple[Caveat, ...]:
    """Return the recording's caveats, with one about rows that exceed the bytes in use."""
    excess = excess_bytes(recording)
    more = (Caveat(CaveatCode.MORE_THAN_IN_USE, TEXT, excess),) if excess else ()
    return (*recording.caveats, *more)


def doubts(recording: Recording) -> list[Caveat]:
    """Return the caveats that put the figures of a recording in doubt."""
    return [caveat for caveat in caveats(recording) if caveat.code in IN_DOUBT]
