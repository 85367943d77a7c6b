"""Segments of the caching allocator at the moment of the snapshot, their blocks, and the rounding of sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64, concatenate_ranges
from tb_memplugin.model.text import Text
from tb_memplugin.readers.torch_snapshot.pickle_values import NONE_NODE, PickleNodes, PickleValues

POOL_BITS = 32  # bits of the second number of a pool's id
REAL_SEGMENT_KEYS = ("segment_type", "allocated_size")  # keys of every real segment, in all PyTorch versions
# PyTorch writes the second state, and its documentation names it like the third.
LIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


@dataclass(frozen=True, eq=False)
class Segments:
    """One row per segment: memory that the allocator reserved from the device.

    A `synthetic` table is empty: PyTorch writes one segment over all addresses when it converts its profiler's events.
    """

    address: I64
    size: I64
    stream: I64
    pool: I64  # see read_pools
    expandable: npt.NDArray[np.bool_]
    synthetic: bool = False


@dataclass(frozen=True, eq=False)
class Blocks:
    """One row per block in use. `requested` is -1 in snapshots that are too old to record it."""

    address: I64
    size: I64
    requested: I64
    stream: I64
    pool: I64
    frames: PickleNodes
    user_metadata: Text


def read_segments(values: PickleValues, segments: PickleNodes) -> tuple[Segments, Blocks]:
    """Read the segments and their live blocks."""
    reserved = _segments(values, segments)
    lists, lengths, blocks = values.stacks(values.column(segments, "blocks"))
    count = np.append(lengths, 0)[lists]  # the file stores equal lists of blocks once
    values.charge_rows(len(segments) + int(count.sum()))
    owner = np.repeat(np.arange(len(lists)), count)
    blocks = blocks[concatenate_ranges(np.cumsum(np.r_[0, lengths])[lists], count)]
    size = values.sizes(values.column(blocks, "size"))
    recorded = values.column(blocks, "address")
    # Older snapshots lack a block's address, but blocks tile their segment in order.
    before = np.cumsum(size) - size
    tiled = reserved.address[owner] + before - before[np.searchsorted(owner, owner)]
    state = values.texts(values.column(blocks, "state"))
    alive = state.isin(LIVE)
    address = np.where(values.is_integer(recorded), values.integers(recorded), tiled)
    return reserved if not reserved.synthetic else _segments(values, segments[:0], synthetic=True), Blocks(
        address=address[alive],
        size=size[alive],
        requested=values.integers(values.column(blocks, "requested_size"))[alive],
        stream=reserved.stream[owner][alive],
        pool=reserved.pool[owner][alive],
        frames=_block_frames(values, blocks)[alive],
        user_metadata=values.texts(values.column(blocks, "user_metadata")[alive]),
    )


def _segments(values: PickleValues, segments: PickleNodes, synthetic: bool = False) -> Segments:
    lacks_keys = all((values.column(segments, key) == NONE_NODE).all() for key in REAL_SEGMENT_KEYS)
    return Segments(
        address=values.integers(values.column(segments, "address")),
        size=values.sizes(values.column(segments, "total_size")),
        stream=values.integers(values.column(segments, "stream"), 0),
        pool=read_pools(values, values.column(segments, "segment_pool_id")),
        expandable=values.integers(values.column(segments, "is_expandable"), 0) == 1,
        synthetic=synthetic or (len(segments) > 0 and lacks_keys),
    )


def read_pools(values: PickleValues, nodes: PickleNodes) -> I64:
    """Read pools, pairs of numbers, as one number each: 0 is the default pool, (0, 0); -1 is missing."""
    lists, lengths, nodes_of_lists = values.stacks(nodes)
    pairs = lengths == 2
    first = np.minimum(np.cumsum(lengths) - lengths, max(len(nodes_of_lists) - 2, 0))
    ids = values.integers(nodes_of_lists, 0)
    number = np.full(len(lengths), -1)
    if len(nodes_of_lists) > 1:
        number = np.where(pairs, (ids[first] << POOL_BITS) + ids[first + 1], -1)
    return np.asarray(np.r_[number, -1][lists])


def pool_name(number: int) -> str:
    """Return the pool's name, `private pool (0, 3)`; empty for the default pool."""
    return f"private pool ({number >> POOL_BITS}, {number & ((1 << POOL_BITS) - 1)})" if number > 0 else ""


def _block_frames(values: PickleValues, blocks: PickleNodes) -> PickleNodes:
    """Return the frames of each block. Very old snapshots have them in the first entry of the block's history."""
    frames = values.column(blocks, "frames")
    lists, lengths, nodes_of_lists = values.stacks(values.column(blocks, "history"))
    in_history = (lists >= 0) & (frames == NONE_NODE)
    if not len(nodes_of_lists) or not in_history.any():
        return frames
    first = nodes_of_lists[(np.cumsum(lengths) - lengths)[lists[in_history]]]
    frames = frames.copy()
    frames[in_history] = values.column(first, "frames")
    return frames


MIB = 1 << 20
MIN_BLOCK_BYTES = 512  # kMinBlockSize: block sizes are multiples of it
MAX_SMALL_BYTES = MIB  # kSmallSize: the largest block of the pool for small ones
ROUNDED = "rounded"  # not PyTorch's: sizes are already those of blocks, or there are no blocks
BUCKETS = 16  # of the setting `roundup_power2_divisions`: 1 MiB, 2 MiB, ... 32 GiB


def round_sizes(size: I64, settings: Mapping[str, Any]) -> I64:
    """Round requested bytes up to block sizes, by the snapshot's allocator settings.

    `settings` has the divisions of `roundup_power2_divisions` under megabytes as text.
    """
    size = np.maximum(size, 0)
    if settings.get(ROUNDED):
        return size
    plain = np.maximum(-(-size // MIN_BLOCK_BYTES), 1) * MIN_BLOCK_BYTES
    given = (settings.get(str(1 << bucket)) for bucket in range(BUCKETS))
    divisions = np.array([n if isinstance(n, int) and 0 < n < MIB else 0 for n in given])
    if not (divisions > 1).any():
        return plain
    power = np.floor(np.log2(np.maximum(size, 1))).astype(np.int64)
    parts = divisions[np.clip(power - 20, 0, BUCKETS - 1)]
    step = np.maximum((np.int64(1) << power) // np.maximum(parts, 1), 1)
    return np.where((parts > 1) & (size > MIN_BLOCK_BYTES * parts), -(-size // step) * step, plain)


def segment_bytes(block: int) -> int:
    """Return the bytes that PyTorch requests from the driver for a block, as in its CUDACachingAllocator."""
    if block <= MAX_SMALL_BYTES:
        return 2 * MIB
    # Blocks from 10 MiB on have a segment of their own.
    return 20 * MIB if block < 10 * MIB else -(-block // (2 * MIB)) * 2 * MIB
