"""PyTorch's caching allocator on CUDA, replayed: blocks of segments, with what it reserves from the device."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from tb_memplugin.readers.torch_snapshot.segments import MAX_SMALL_BYTES, MIN_BLOCK_BYTES, segment_bytes

FIRST_ADDRESS = 0x7F0000000000
SnapshotStacks = list[list[dict[str, Any]]]  # frames of each stack, innermost first


@dataclass(eq=False)
class Block:
    """A part of a segment; the ones before and after it are neighbors in the address space."""

    address: int
    size: int
    segment: "Segment"
    requested: int = 0
    stack: int = -1
    is_free: bool = True
    before: "Block | None" = None
    after: "Block | None" = None


@dataclass(eq=False)
class Segment:
    """Memory that was reserved from the device at once."""

    address: int
    size: int
    is_small: bool
    stack: int
    stream: int = 0
    first: Block | None = None

    def described(self, stacks: SnapshotStacks) -> dict[str, Any]:
        """Return the segment as a snapshot has it, with its blocks in the order of their addresses."""
        blocks, block = list[dict[str, Any]](), self.first
        while block is not None:
            state = "inactive" if block.is_free else "active_allocated"
            described = {"address": block.address, "size": block.size, "state": state}
            if not block.is_free:
                described |= {"requested_size": block.requested, "frames": stacks[block.stack]}
            blocks.append(described)
            block = block.after
        used = sum(one["size"] for one in blocks if one["state"] != "inactive")
        return {
            "device": 0, "address": self.address, "total_size": self.size, "allocated_size": used, "active_size": used,
            "stream": self.stream, "segment_type": "small" if self.is_small else "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": stacks[self.stack], "blocks": blocks,
        }  # fmt: skip


EventReport = Callable[[str, int, int, int, int], None]  # of an action, address, bytes, stack and stream
Pool = tuple[bool, int]  # of small blocks or large ones, for one stream


def rounded(size: int) -> int:
    """Return the size of the block for a request, in bytes."""
    return max(-(-size // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES, MIN_BLOCK_BYTES)


@dataclass
class CachingAllocator:
    """The allocator of one GPU. `report` gets each reservation from the device.

    At `limit` bytes, it releases free segments. A segment that does not fit then is reserved beyond the limit, so that
    the whole need is known.
    """

    report: EventReport
    limit: int = 1 << 62
    reserved: int = 0
    segments: dict[int, Segment] = field(default_factory=dict)
    # Free blocks by their size, then their address.
    _free: dict[Pool, list[tuple[int, int, Block]]] = field(default_factory=lambda: defaultdict(list))
    _next: int = FIRST_ADDRESS

    def allocate(self, size: int, stack: int, stream: int = 0) -> Block:
        """Return a block for so many bytes. Streams do not share free memory."""
        needed = rounded(size)
        is_small = needed <= MAX_SMALL_BYTES
        block = self._best_fit(needed, (is_small, stream)) or self._reserve(needed, is_small, stack, stream)
        rest = block.size - needed
        if rest >= MIN_BLOCK_BYTES if is_small else rest > MAX_SMALL_BYTES:
            self._split(block, needed)
        block.is_free, block.requested, block.stack = False, size, stack
        return block

    def free(self, block: Block) -> None:
        """Free a block, and join it with free neighbors."""
        block.is_free = True
        for other in (block.before, block.after):
            if other is not None and other.is_free:
                self._forget(other)
                block = _join(block, other)
        self._keep(block)

    def _best_fit(self, size: int, pool: Pool) -> Block | None:
        free = self._free[pool]
        at = bisect_left(free, size, key=itemgetter(0))
        return free.pop(at)[2] if at < len(free) else None

    def _reserve(self, size: int, is_small: bool, stack: int, stream: int) -> Block:
        wanted = segment_bytes(size)
        if self.reserved + wanted > self.limit:
            self.release()
        segment = Segment(self._next, wanted, is_small, stack, stream)
        self._next += wanted
        self.reserved += wanted
        segment.first = Block(segment.address, wanted, segment)
        self.segments[segment.address] = segment
        self.report("segment_alloc", segment.address, wanted, stack, stream)
        return segment.first

    def release(self) -> None:
        """Give segments that are free as a whole back to the device, as `empty_cache` does."""
        for segment in list(self.segments.values()):
            first = segment.first
            if first is not None and first.is_free and first.size == segment.size:
                self._forget(first)
                del self.segments[segment.address]
                self.reserved -= segment.size
                self.report("segment_free", segment.address, segment.size, -1, segment.stream)

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.address + size, block.size - size, block.segment, before=block, after=block.after)
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, size
        self._keep(rest)

    def _keep(self, block: Block) -> None:
        insort(self._free[_pool(block)], (block.size, block.address, block))

    def _forget(self, block: Block) -> None:
        free = self._free[_pool(block)]
        del free[bisect_left(free, (block.size, block.address, block))]


def _pool(block: Block) -> Pool:
    return block.segment.is_small, block.segment.stream


def _join(one: Block, other: Block) -> Block:
    """Return the block of two neighbors."""
    low, high = (one, other) if one.address < other.address else (other, one)
    low.size += high.size
    low.after, low.is_free = high.after, True
    if high.after is not None:
        high.after.before = low
    return low
