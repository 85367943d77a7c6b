"""Lifetimes of a snapshot's allocations, from the trace of events and the final blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64
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
    final Blocks, -1 where it is none of them. Sizes are in bytes: of the block, and as requested.
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
    partner = np.where(pairs.partner >= 0, events[np.maximum(pairs.partner, 0)] if len(events) else -1, -1)
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
