"""The life of every allocation: from the trace of events, and from the blocks that were there in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.native.torch import caching_allocator
from tb_memplugin.readers.common.pairing import pair
from tb_memplugin.readers.torch_snapshot.segments import Blocks, Segments
from tb_memplugin.readers.torch_snapshot.size_rounding import ROUNDED, rounded
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace

BLOCK_KINDS = {
    Action.SEGMENT_ALLOC: caching_allocator.SEGMENT_ALLOC,
    Action.SEGMENT_FREE: caching_allocator.SEGMENT_FREE,
    Action.SEGMENT_MAP: caching_allocator.SEGMENT_MAP,
    Action.SEGMENT_UNMAP: caching_allocator.SEGMENT_UNMAP,
}


@dataclass(frozen=True, eq=False)
class Lives:
    """One row per lifetime: those of the trace in its order, then frees without an allocation, then blocks without.

    `born` and `freed` are events, -1 where there is none; `asked_free` the event that asked for the free. `block` is
    the row of Blocks, -1 where it is none of the last ones. Sizes in bytes: of the block, and what was asked for.
    """

    born: I64
    freed: I64
    asked_free: I64
    block: I64
    address: I64
    size: I64
    requested: I64
    taken: int  # allocations at an address that was in use
    lost: int  # alive in the trace to its end, and no block of the snapshot
    guessed: int  # blocks whose size could not be worked out: they are as large as they had to be at least


def lifetimes(trace: Trace, segments: Segments, blocks: Blocks, settings: Mapping[str, Any]) -> Lives:
    action = trace.action
    ends = action == Action.FREE_COMPLETED
    if not ends.any():
        # A trace may leave these out: then the request ends it, unless the block was still waiting in the end.
        ends = (action == Action.FREE_REQUESTED) & ~np.isin(trace.address, blocks.address)
    events = np.flatnonzero((action == Action.ALLOC) | ends)
    pairs = pair(trace.address[events], ends[events], trace.known[events])
    partner = np.where(pairs.partner >= 0, events[np.maximum(pairs.partner, 0)] if len(events) else -1, -1)
    is_free = ends[events]
    allocs, stray = events[~is_free], events[is_free & (partner < 0)]
    freed = partner[~is_free]

    # An allocation at an address in use ends the one before it, which was freed unseen.
    block_at, lost = _blocks_of(trace.address[allocs], freed < 0, blocks)
    seen = np.zeros(len(blocks.size), dtype=bool)
    seen[block_at[block_at >= 0]] = True
    old = np.flatnonzero(~seen)

    address = np.r_[trace.address[allocs], trace.address[stray], blocks.address[old]]
    size, guessed = _sizes(trace, allocs, ends, segments, np.r_[trace.address[stray], blocks.address[old]], settings)
    size = np.where(block_at >= 0, np.r_[blocks.size, 0][block_at], size)
    none = np.full(len(old), -1)
    born = np.r_[allocs, np.full(len(stray), -1), none]
    ended = np.r_[freed, stray, none]
    told = blocks.requested[old]
    return Lives(
        born=born,
        freed=ended,
        asked_free=_asked(trace, address, ended),
        block=np.r_[block_at, np.full(len(stray), -1), old],
        address=address,
        size=np.r_[size, rounded(trace.size[stray], settings), blocks.size[old]],
        requested=np.r_[trace.size[allocs], trace.size[stray], np.where(told >= 0, told, blocks.size[old])],
        taken=pairs.address_taken,
        lost=lost,
        guessed=guessed + (0 if settings.get(ROUNDED) else len(stray)),
    )


def _blocks_of(address: I64, alive: np.ndarray, blocks: Blocks) -> tuple[I64, int]:
    """(the last block of each allocation that was never freed, -1 where there is none; how many have none)."""
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
    """(bytes of the block that each allocation got, how many had no room for what they asked)."""
    kind = np.zeros(len(trace), dtype=np.uint8)
    size = trace.size.copy()
    for action, of_block in BLOCK_KINDS.items():
        kind[trace.action == action] = of_block
    kind[allocs] = caching_allocator.ALLOC
    size[allocs] = rounded(trace.size[allocs], settings)
    kind[ends] = caching_allocator.FREE
    kind[~trace.known | (size < 0)] = caching_allocator.NOTHING
    limit = settings.get("max_split_size", -1)
    sizes, odd = caching_allocator.block_sizes(
        kind,
        trace.address,
        size,
        live,
        segments.address,
        segments.size,
        segments.expandable.astype(np.uint8),
        limit if isinstance(limit, int) else -1,
    )
    return np.maximum(sizes[allocs], 0), odd


def _asked(trace: Trace, address: I64, freed: I64) -> I64:
    """The event that asked for each free: the last request at the address before the free was completed."""
    asked = np.flatnonzero(trace.action == Action.FREE_REQUESTED)
    found = np.full(len(address), -1)
    if not len(asked):
        return found
    # By address, then by time: one number that sorts as both do.
    _, code = np.unique(np.r_[trace.address[asked], address], return_inverse=True)
    width = len(trace) + 1
    key = code[: len(asked)] * width + asked
    order = np.argsort(key)
    wanted = code[len(asked) :] * width + np.where(freed >= 0, freed, len(trace))
    at = np.searchsorted(key[order], wanted, side="right") - 1
    hit = (at >= 0) & (code[: len(asked)][order][np.maximum(at, 0)] == code[len(asked) :])
    found[hit] = asked[order][at[hit]]
    return found
