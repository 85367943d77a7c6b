"""A plain version of PyTorch's caching allocator, which logs the same trace and takes the same snapshots.

Best fit, splitting and merging as documented; separate streams and pools, and separate small and large requests. It
records the expected answers of a reader: the block size of every allocation, and the bytes in use at any snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LEAST, MIB = 512, 1 << 20
SMALL_SEGMENT, LARGE_SEGMENT = 2 * MIB, 20 * MIB
RANGE = 1 << 36  # address range of an expandable segment
UNMAPPED = "unmapped"
IN_USE = ("active_allocated", "active_pending_free")
Frames = list[dict[str, Any]]
Pool = tuple[int, int]


@dataclass
class Block:
    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: Frames = field(default_factory=list)


@dataclass
class Segment:
    address: int
    small: bool
    stream: int
    pool: Pool
    blocks: list[Block]
    expandable: bool = False

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks if block.state != UNMAPPED)

    def runs(self) -> Iterator[list[Block]]:
        """Yield the runs of contiguous mapped blocks, each a segment of a snapshot."""
        run: list[Block] = []
        for block in self.blocks:
            if block.state != UNMAPPED:
                run.append(block)
            elif run:
                yield run
                run = []
        if run:
            yield run


class CachingAllocator:
    """The allocator. `truth` maps the number of each alloc event in the trace to the bytes of its block.

    `known` maps the number of each snapshot event to the blocks in use then, by address and bytes.
    """

    def __init__(self, limit: int = 1 << 40, start: int = 0x7F0000000000, *, expandable: bool = False) -> None:
        self.limit, self.next_address, self.clock = limit, start, 1_700_000_000_000_000
        self.expandable = expandable
        self.segments: list[Segment] = []
        self.trace: list[dict[str, Any]] = []
        self.truth: dict[int, int] = {}
        self.known: dict[int, Counter[tuple[int, int]]] = {}

    def record(self, action: str, address: int | None, size: int, stream: int = 0, **more: Any) -> None:
        self.clock += 7
        told = {} if address is None else {"addr": address}
        entry = {"action": action, **told, "size": size, "stream": stream, "time_us": self.clock, **more}
        self.trace.append(entry)

    def alloc(
        self, requested: int, frames: Frames | None = None, stream: int = 0, pool: Pool = (0, 0), **more: Any
    ) -> int | None:
        """Return the address, or None where the device is full. `more` is added to the event."""
        frames = frames or []
        size = max(-(-requested // LEAST), 1) * LEAST
        small = size <= MIB
        own = [s for s in self.segments if (s.small, s.stream, s.pool) == (small, stream, pool)]
        free = [
            (block.size, block.address, segment, block)
            for segment in own
            for block in segment.blocks
            if block.state == "inactive" and block.size >= size
        ]
        if free:
            _, _, segment, block = min(free, key=lambda found: found[:2])
        else:
            page = SMALL_SEGMENT if small else LARGE_SEGMENT
            wanted = page if small or size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            left = self.limit - sum(segment.size for segment in self.segments)
            if (-(-size // page) * page if self.expandable else wanted) > left:
                self.record("oom", None, requested, stream, device_free=left, frames=frames)
                return None
            if self.expandable:
                segment = own[0] if own else self._segment(RANGE, small, stream, pool, UNMAPPED)
                block = self._map(segment, size, page, frames)
            else:
                segment = self._segment(wanted, small, stream, pool, "inactive")
                block = segment.blocks[0]
                self.record("segment_alloc", segment.address, wanted, stream, frames=frames, pool_id=pool)
        rest = block.size - size
        if rest >= LEAST if small or segment.expandable else rest > MIB:
            segment.blocks.insert(segment.blocks.index(block) + 1, Block(block.address + size, rest))
            block.size = size
        block.requested, block.state, block.frames = requested, "active_allocated", frames
        self.truth[len(self.trace)] = block.size
        self.record("alloc", block.address, requested, stream, frames=frames, pool_id=pool, **more)
        return block.address

    def _segment(self, size: int, small: bool, stream: int, pool: Pool, state: str) -> Segment:
        blocks = [Block(self.next_address, size, state=state)]
        self.segments.append(Segment(self.next_address, small, stream, pool, blocks, state == UNMAPPED))
        self.next_address += size + 2 * MIB
        return self.segments[-1]

    def _map(self, segment: Segment, size: int, page: int, frames: Frames) -> Block:
        """Return a free block with room for `size`, after mapping pages behind a free block if necessary."""
        blocks = segment.blocks
        for at, block in enumerate(blocks):
            before = blocks[at - 1] if at and blocks[at - 1].state == "inactive" else None
            had = before.size if before else 0
            if block.state == UNMAPPED and had + block.size >= size:
                break
        mapped = -(-(size - had) // page) * page
        new = Block(block.address, mapped)
        block.address, block.size = block.address + mapped, block.size - mapped
        blocks[at : at + 1] = [new, block] if block.size else [new]
        self.record("segment_map", new.address, mapped, segment.stream, frames=frames, pool_id=segment.pool)
        return self._merge(segment, new)

    def request_free(self, address: int, frames: Frames | None = None) -> None:
        segment, block = self._find(address)
        block.state = "active_pending_free"
        self.record("free_requested", address, block.requested, segment.stream, frames=frames or [])

    def complete_free(self, address: int, frames: Frames | None = None) -> None:
        segment, block = self._find(address)
        self.record("free_completed", address, block.requested, segment.stream, frames=frames or [])
        block.state, block.frames = "inactive", []
        self._merge(segment, block)

    def _merge(self, segment: Segment, block: Block) -> Block:
        """Merge a block with the free memory on both sides."""
        at = segment.blocks.index(block)
        for neighbor in (at + 1, at - 1):
            if 0 <= neighbor < len(segment.blocks) and segment.blocks[neighbor].state == block.state:
                other = segment.blocks.pop(neighbor)
                block.address, block.size = min(block.address, other.address), block.size + other.size
                at = segment.blocks.index(block)
        return block

    def free(self, address: int) -> None:
        self.request_free(address)
        self.complete_free(address)

    def annotate(self, address: int, text: str) -> None:
        self.record("annotate", address, 0, user_metadata=text, frames=[])

    def empty_cache(self) -> None:
        for segment in list(self.segments):
            if segment.expandable:
                self._unmap(segment)
            elif len(segment.blocks) == 1 and segment.blocks[0].state == "inactive":
                self.segments.remove(segment)
                self.record("segment_free", segment.address, segment.size, segment.stream, frames=[])

    def _unmap(self, segment: Segment) -> None:
        """Return the free whole pages of a segment."""
        page = SMALL_SEGMENT if segment.small else LARGE_SEGMENT
        for block in [block for block in segment.blocks if block.state == "inactive"]:
            first = segment.address + -(-(block.address - segment.address) // page) * page
            last = segment.address + (block.address + block.size - segment.address) // page * page
            if last <= first:
                continue
            gone = Block(first, last - first, state=UNMAPPED)
            parts = [Block(block.address, first - block.address), gone, Block(last, block.address + block.size - last)]
            at = segment.blocks.index(block)
            segment.blocks[at : at + 1] = [part for part in parts if part.size]
            self.record("segment_unmap", gone.address, gone.size, segment.stream, frames=[])
            self._merge(segment, gone)

    def in_use(self) -> Counter[tuple[int, int]]:
        return Counter((b.address, b.size) for s in self.segments for b in s.blocks if b.state in IN_USE)

    def take(self) -> None:
        """Add an event like those of torch.cuda.memory._snapshot to the trace."""
        self.known[len(self.trace)] = self.in_use()
        self.record("snapshot", 0, 0)

    def snapshot(self, **more: Any) -> dict[str, Any]:
        segments = [self._told(segment, run) for segment in self.segments for run in segment.runs()]
        return {"segments": segments, "device_traces": [list(self.trace)], **more}

    def _told(self, segment: Segment, blocks: list[Block]) -> dict[str, Any]:
        return {
            "device": 0,
            "address": blocks[0].address,
            "total_size": sum(block.size for block in blocks),
            "allocated_size": sum(block.size for block in blocks if block.state == "active_allocated"),
            "stream": segment.stream,
            "segment_type": "small" if segment.small else "large",
            "segment_pool_id": segment.pool,
            "is_expandable": segment.expandable,
            "frames": [],
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": block.state,
                    "frames": block.frames,
                }
                for block in blocks
            ],
        }

    def _find(self, address: int) -> tuple[Segment, Block]:
        return next((s, b) for s in self.segments for b in s.blocks if b.address == address and b.state in IN_USE)
