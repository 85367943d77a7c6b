"""What the allocator held when the snapshot was taken: its segments, and the blocks that tile them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.readers.torch_snapshot.pickle_columns import NOTHING, Nodes, Values

POOL_BITS = 32  # of the second number of a pool's id
OF_ALLOCATOR = ("segment_type", "allocated_size")  # keys that every allocator's segment has, of any age
LIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")  # the last is how the documents spell it


@dataclass(frozen=True, eq=False)
class Segments:
    """One row per segment: memory that the allocator has from the device.

    None where they are `made_up`: what PyTorch makes from its profiler's events has one that spans all addresses.
    """

    address: I64
    size: I64
    stream: I64
    pool: I64  # as read_pools numbers them
    expandable: npt.NDArray[np.bool_]
    frames: Nodes
    made_up: bool = False


@dataclass(frozen=True, eq=False)
class Blocks:
    """One row per block in use. `requested` -1 where the snapshot is too old to tell."""

    address: I64
    size: I64
    requested: I64
    stream: I64
    pool: I64
    frames: Nodes
    user_metadata: Nodes


def read_segments(values: Values, segments: Nodes) -> tuple[Segments, Blocks]:
    held = _segments(values, segments)
    lists, lengths, blocks = values.stacks(values.column(segments, "blocks"))
    owner, blocks = _owners(lists, lengths, blocks)
    size = values.sizes(values.column(blocks, "size"))
    told = values.column(blocks, "address")
    # Older snapshots leave a block's address out: blocks tile their segment in order.
    before = np.cumsum(size) - size
    tiled = held.address[owner] + before - before[np.searchsorted(owner, owner)]
    state = values.texts(values.column(blocks, "state"))
    alive = np.isin(state.codes, [i for i in range(len(state.strings)) if state.strings[i] in LIVE])
    address = np.where(values.known(told), values.integers(told), tiled)
    return held if not held.made_up else _segments(values, segments[:0], made_up=True), Blocks(
        address=address[alive],
        size=size[alive],
        requested=values.integers(values.column(blocks, "requested_size"))[alive],
        stream=held.stream[owner][alive],
        pool=held.pool[owner][alive],
        frames=_block_frames(values, blocks)[alive],
        user_metadata=values.column(blocks, "user_metadata")[alive],
    )


def _segments(values: Values, segments: Nodes, made_up: bool = False) -> Segments:
    untold = all((values.column(segments, key) == NOTHING).all() for key in OF_ALLOCATOR)
    return Segments(
        address=values.integers(values.column(segments, "address")),
        size=values.sizes(values.column(segments, "total_size")),
        stream=values.integers(values.column(segments, "stream"), 0),
        pool=read_pools(values, values.column(segments, "segment_pool_id")),
        expandable=values.integers(values.column(segments, "is_expandable"), 0) == 1,
        frames=values.column(segments, "frames"),
        made_up=made_up or (len(segments) > 0 and untold),
    )


def read_pools(values: Values, nodes: Nodes) -> I64:
    """Pools as one number each, from pairs: 0 is the default pool, (0, 0); -1 where none is told."""
    lists, lengths, places = values.stacks(nodes)
    pairs = lengths == 2
    first = np.minimum(np.cumsum(lengths) - lengths, max(len(places) - 2, 0))
    ids = values.integers(places, 0)
    number = np.full(len(lengths), -1)
    if len(places) > 1:
        number = np.where(pairs, (ids[first] << POOL_BITS) + ids[first + 1], -1)
    return np.asarray(np.r_[number, -1][lists])


def pool_name(number: int) -> str:
    """`private pool (0, 3)`; nothing of the default one."""
    return f"private pool ({number >> POOL_BITS}, {number & ((1 << POOL_BITS) - 1)})" if number > 0 else ""


def _owners(lists: I64, lengths: I64, places: Nodes) -> tuple[I64, Nodes]:
    """(segment of each block, the blocks) in order of segments; equal lists of blocks are stored once."""
    offsets = np.cumsum(np.r_[0, lengths])
    count = np.where(lists >= 0, lengths[lists] if len(lengths) else 0, 0)
    owner = np.repeat(np.arange(len(lists)), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return owner, places[offsets[lists[owner]] + within]


def _block_frames(values: Values, blocks: Nodes) -> Nodes:
    """Very old snapshots keep a block's stack in the first entry of its history."""
    frames = values.column(blocks, "frames")
    lists, lengths, places = values.stacks(values.column(blocks, "history"))
    old = (lists >= 0) & (frames == NOTHING)
    if not len(places) or not old.any():
        return frames
    first = places[(np.cumsum(lengths) - lengths)[lists[old]]]
    frames = frames.copy()
    frames[old] = values.column(first, "frames")
    return frames
