"""Lifetimes and addresses of a snapshot's allocations, from the trace of events and the final blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.tables import Regions
from tb_memplugin.native.numbering import number_values
from tb_memplugin.native.torch import caching_allocator
from tb_memplugin.readers.common.rows import pair
from tb_memplugin.readers.torch_snapshot.segments import ROUNDED, Blocks, Segments, round_sizes
from tb_memplugin.readers.torch_snapshot.trace import Trace, TraceAction

BLOCK_KINDS = {
    TraceAction.SEGMENT_ALLOC: caching_allocator.SEGMENT_ALLOC,
    TraceAction.SEGMENT_FREE: caching_allocator.SEGMENT_FREE,
    TraceAction.SEGMENT_MAP: caching_allocator.SEGMENT_MAP,
    TraceAction.SEGMENT_UNMAP: caching_allocator.SEGMENT_UNMAP,
}


@dataclass(frozen=True, eq=False)
class BlockLifetimes:
    """One row per lifetime: allocations of the trace in its order, frees without allocation, blocks without either.

    `alloc_event`, `free_event` and `free_request_event` are events, -1 where there is none. `block` is the row of the
    final Blocks, -1 where it has none. Sizes are in bytes: of the block, and as requested.
    """

    alloc_event: I64
    free_event: I64
    free_request_event: I64
    block: I64
    address: I64
    size: I64
    requested: I64
    address_taken: int  # allocations at an address in use
    unmatched: int  # allocations live at the end of the trace, but without a final block
    estimated_sizes: int  # blocks of unknown size, which have the least possible size


def lifetimes(trace: Trace, segments: Segments, blocks: Blocks, settings: Mapping[str, Any]) -> BlockLifetimes:
    """Pair the trace's allocations with frees and final blocks. `settings`: the allocator's, as in the snapshot."""
    action = trace.action
    ends = action == TraceAction.FREE_COMPLETED
    if not ends.any():
        # Without completed frees, the request ends an allocation, unless its block is still pending at the end.
        ends = (action == TraceAction.FREE_REQUESTED) & ~np.isin(trace.address, blocks.address)
    events = np.flatnonzero((action == TraceAction.ALLOC) | ends)
    pairs = pair(trace.address[events], ends[events], trace.known[events])
    partner = np.append(events, -1)[pairs.partner]
    is_free = ends[events]
    allocs, stray_frees = events[~is_free], events[is_free & (partner < 0)]
    freed = partner[~is_free]

    # An allocation at an address in use ends the earlier one, whose free is missing.
    block_at, unmatched = _final_blocks(trace.address[allocs], freed < 0, blocks)
    seen = np.zeros(len(blocks.size), dtype=bool)
    seen[block_at[block_at >= 0]] = True
    old = np.flatnonzero(~seen)

    address = np.r_[trace.address[allocs], trace.address[stray_frees], blocks.address[old]]
    size, estimated = _sizes(
        trace, allocs, ends, segments, np.r_[trace.address[stray_frees], blocks.address[old]], settings
    )
    size = np.where(block_at >= 0, np.r_[blocks.size, 0][block_at], size)
    none = np.full(len(old), -1)
    alloc_event = np.r_[allocs, np.full(len(stray_frees), -1), none]
    free_event = np.r_[freed, stray_frees, none]
    recorded = blocks.requested[old]
    return BlockLifetimes(
        alloc_event=alloc_event,
        free_event=free_event,
        free_request_event=_free_requests(trace, address, free_event),
        block=np.r_[block_at, np.full(len(stray_frees), -1), old],
        address=address,
        size=np.r_[size, round_sizes(trace.size[stray_frees], settings), blocks.size[old]],
        requested=np.r_[
            trace.size[allocs], trace.size[stray_frees], np.where(recorded >= 0, recorded, blocks.size[old])
        ],
        address_taken=pairs.address_taken,
        unmatched=unmatched,
        estimated_sizes=estimated + (0 if settings.get(ROUNDED) else len(stray_frees)),
    )


def _final_blocks(address: I64, alive: np.ndarray, blocks: Blocks) -> tuple[I64, int]:
    """Return the final block of each allocation that was never freed, -1 for none, and how many have none."""
    found = np.full(len(address), -1)
    if not len(blocks.size):
        return found, int(alive.sum())
    order = np.argsort(blocks.address, kind="stable")
    at = np.minimum(np.searchsorted(blocks.address[order], address[alive]), len(order) - 1)
    same = blocks.address[order][at] == address[alive]
    found[alive] = np.where(same, order[at], -1)
    return found, int((~same).sum())


def _sizes(
    trace: Trace, allocs: I64, ends: np.ndarray, segments: Segments, live: I64, settings: Mapping[str, Any]
) -> tuple[I64, int]:
    """Return the block size of each allocation in bytes, and how many did not fit into the free memory around them."""
    kind = np.zeros(len(trace), dtype=np.uint8)
    size = trace.size.copy()
    for action, block_kind in BLOCK_KINDS.items():
        kind[trace.action == action] = block_kind
    kind[allocs] = caching_allocator.ALLOC
    size[allocs] = round_sizes(trace.size[allocs], settings)
    kind[ends] = caching_allocator.FREE
    kind[~trace.known | (size < 0)] = caching_allocator.NOTHING
    limit = settings.get("max_split_size", -1)
    sizes, misfits = caching_allocator.block_sizes(
        kind,
        trace.address,
        size,
        live,
        segments.address,
        segments.size,
        segments.expandable.astype(np.uint8),
        limit if isinstance(limit, int) else -1,
    )
    return np.maximum(sizes[allocs], 0), misfits


def _free_requests(trace: Trace, address: I64, free_event: I64) -> I64:
    """Return the event that requested each free: the last request at the address before the free was completed."""
    is_request = trace.action == TraceAction.FREE_REQUESTED
    if not is_request.any():
        return np.full(len(address), -1)
    _, place = number_values(np.r_[trace.address, address])
    of_event, of_row = place[: len(trace)], place[len(trace) :]
    return caching_allocator.free_requests(is_request.view(np.uint8), of_event, of_row, free_event)


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
    both = zip(_plain_segments(trace, segments), _expandable_segments(trace, segments), strict=True)
    base, size, start, end = (np.concatenate(columns) for columns in both)
    order = np.lexsort((start, base))
    ranges = _AddressRanges(base[order], size[order], start[order], end[order])
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
    # Ranges that had one base in turn are adjacent; the last one that starts before the position is the candidate. The
    # first iteration nearly always finds all; in damaged files, ranges of one base overlap in time.
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
