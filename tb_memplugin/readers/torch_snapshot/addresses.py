"""Addresses of allocations: the segment of each, and the offset within it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.tables import Regions
from tb_memplugin.readers.common.rows import pair
from tb_memplugin.readers.torch_snapshot.lifetimes import BlockLifetimes
from tb_memplugin.readers.torch_snapshot.segments import Segments
from tb_memplugin.readers.torch_snapshot.trace import Trace, TraceAction

MAX_OVERLAPPING = 8  # ranges of one base at one time; an undamaged file has one
MAPS = [TraceAction.SEGMENT_MAP, TraceAction.SEGMENT_UNMAP]


class _AddressRanges(NamedTuple):
    """Memory from the device: unsigned addresses, reserved at events start <= p < end."""

    base: U64
    size: U64
    start: I64
    end: I64


def locate_in_segments(trace: Trace, segments: Segments, lives: BlockLifetimes) -> tuple[Regions, I32, I64]:
    """Return all segments over time, and per allocation its segment and its offset in bytes; -1 where it is in none."""
    ranges = _merge_sorted(_plain_segments(trace, segments), _expandable_segments(trace, segments))
    regions = Regions(
        index=ranges.base.view(np.int64),
        size=ranges.size.astype(np.int64),
        kind=np.full(len(ranges.base), RegionKind.TEMPORARY, np.uint8),
        start=ranges.start,
        end=ranges.end,
    )
    address = lives.address.view(np.uint64)
    # A position at which the allocation's segment certainly exists.
    position = np.where(
        lives.alloc_event >= 0,
        lives.alloc_event,
        np.where(lives.free_event >= 0, lives.free_event, max(len(trace) - 1, 0)),
    )
    row = _find_range(ranges, address, position)
    inside = row >= 0
    offset = np.where(inside, (address - np.r_[ranges.base, np.uint64(0)][row]).view(np.int64), -1)
    return regions, row.astype(np.int32), offset


def _merge_sorted(one: _AddressRanges, other: _AddressRanges) -> _AddressRanges:
    """Merge two lists of ranges, sorted by base, then by start."""
    base, start = np.r_[one.base, other.base], np.r_[one.start, other.start]
    order = np.lexsort((start, base))
    size, end = np.r_[one.size, other.size], np.r_[one.end, other.end]
    return _AddressRanges(base[order], size[order], start[order], end[order])


def _plain_segments(trace: Trace, segments: Segments) -> _AddressRanges:
    """Return the segments that are allocated and freed as a whole."""
    is_free = trace.action == TraceAction.SEGMENT_FREE
    events = np.flatnonzero(((trace.action == TraceAction.SEGMENT_ALLOC) | is_free) & trace.known & (trace.size > 0))
    partner = pair(trace.address[events], is_free[events], trace.known[events]).partner
    frees = is_free[events]
    allocated, freed = events[~frees], np.where(partner >= 0, np.r_[events, -1][partner], len(trace))[~frees]
    early = events[frees & (partner < 0)]
    kept = ~segments.expandable & ~np.isin(segments.address, trace.address[allocated][freed == len(trace)])
    n = max(len(trace), 1)
    return _AddressRanges(
        np.r_[trace.address[allocated], trace.address[early], segments.address[kept]].view(np.uint64),
        np.r_[trace.size[allocated], trace.size[early], segments.size[kept]].astype(np.uint64),
        np.r_[allocated, np.full(len(early) + kept.sum(), -1)],
        np.r_[np.minimum(freed, n), early, np.full(kept.sum(), n)],
    )


def _expandable_segments(trace: Trace, segments: Segments) -> _AddressRanges:
    """Return expandable segments: address ranges mapped piece by piece. Adjacent pieces form one segment."""
    mapped = np.isin(trace.action, MAPS) & trace.known & (trace.size > 0)
    base = np.r_[segments.address[segments.expandable], trace.address[mapped]].view(np.uint64)
    end = base + np.r_[segments.size[segments.expandable], trace.size[mapped]].astype(np.uint64)
    order = np.argsort(base, kind="stable")
    base, end = base[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, base[1:] > reach[:-1]][: len(base)])
    last = np.r_[first[1:] - 1, len(base) - 1][: len(first)]
    count = len(first)
    return _AddressRanges(
        base[first], reach[last] - base[first], np.full(count, -1), np.full(count, max(len(trace), 1))
    )


def _find_range(ranges: _AddressRanges, address: U64, position: I64) -> I64:
    """Return the range that contains each address at its position, -1 where none does. Ranges are sorted."""
    found = np.full(len(address), -1)
    if not len(ranges.base):
        return found
    # Ranges that had one base in turn are adjacent: of those, the last that starts before the position. Nearly always
    # the first iteration finds all; damaged files have ranges of one base that overlap in time.
    group = np.cumsum(np.r_[0, ranges.base[1:] != ranges.base[:-1]])
    width = int(max(ranges.start.max(), position.max(initial=0))) + 2
    below = np.searchsorted(ranges.base, address, side="right") - 1
    wanted = np.where(below >= 0, group[below] * width + position + 1, -1)
    latest = np.searchsorted(group * width + ranges.start + 1, wanted, side="right") - 1
    for back in range(MAX_OVERLAPPING):
        row = latest - back
        contains = (row >= 0) & (found < 0)
        row = np.maximum(row, 0)
        contains &= (address - ranges.base[row] < ranges.size[row]) & (address >= ranges.base[row])
        contains &= (ranges.start[row] <= position) & (position <= ranges.end[row])
        found[contains] = row[contains]
        if (found >= 0).all():
            break
    return found
