"""PyTorch's caching allocator in its plainest form, which keeps the trace and takes the snapshots that it would.

Best fit, splitting and merging as documented; streams apart, small requests apart from large ones. It knows the truth
that a reader has to find: the bytes of the block behind every allocation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEAST, MIB = 512, 1 << 20
SMALL_SEGMENT, LARGE_SEGMENT = 2 * MIB, 20 * MIB


@dataclass
class Block:
    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Segment:
    address: int
    small: bool
    stream: int
    blocks: list[Block]

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)


class CachingAllocator:
    """`truth` maps the number of each alloc event in the trace to the bytes of its block."""

    def __init__(self, limit: int = 1 << 40, start: int = 0x7F0000000000) -> None:
        self.limit, self.next_address, self.clock = limit, start, 1_700_000_000_000_000
        self.segments: list[Segment] = []
        self.trace: list[dict[str, Any]] = []
        self.truth: dict[int, int] = {}

    def record(self, action: str, address: int | None, size: int, stream: int = 0, **more: Any) -> None:
        self.clock += 7
        told = {} if address is None else {"addr": address}
        entry = {"action": action, **told, "size": size, "stream": stream, "time_us": self.clock, **more}
        self.trace.append(entry)

    def alloc(self, requested: int, frames: list[dict[str, Any]] | None = None, stream: int = 0) -> int | None:
        """The address, or None where the device has no room."""
        frames = frames or []
        size = max(-(-requested // LEAST), 1) * LEAST
        small = size <= MIB
        free = [
            (block.size, block.address, segment, block)
            for segment in self.segments
            if segment.small == small and segment.stream == stream
            for block in segment.blocks
            if block.state == "inactive" and block.size >= size
        ]
        if not free:
            wanted = SMALL_SEGMENT if small else LARGE_SEGMENT if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            left = self.limit - sum(segment.size for segment in self.segments)
            if wanted > left:
                self.record("oom", None, requested, stream, device_free=left, frames=frames)
                return None
            segment = Segment(self.next_address, small, stream, [Block(self.next_address, wanted)])
            self.next_address += wanted + 2 * MIB
            self.segments.append(segment)
            self.record("segment_alloc", segment.address, wanted, stream, frames=frames)
            block = segment.blocks[0]
        else:
            _, _, segment, block = min(free, key=lambda found: found[:2])
        rest = block.size - size
        if rest >= LEAST if small else rest > MIB:
            segment.blocks.insert(segment.blocks.index(block) + 1, Block(block.address + size, rest))
            block.size = size
        block.requested, block.state, block.frames = requested, "active_allocated", frames
        self.truth[len(self.trace)] = block.size
        self.record("alloc", block.address, requested, stream, frames=frames)
        return block.address

    def request_free(self, address: int, frames: list[dict[str, Any]] | None = None) -> None:
        segment, block = self._find(address)
        block.state = "active_pending_free"
        self.record("free_requested", address, block.requested, segment.stream, frames=frames or [])

    def complete_free(self, address: int, frames: list[dict[str, Any]] | None = None) -> None:
        segment, block = self._find(address)
        self.record("free_completed", address, block.requested, segment.stream, frames=frames or [])
        block.state, block.frames = "inactive", []
        at = segment.blocks.index(block)
        for neighbour in (at + 1, at - 1):
            if 0 <= neighbour < len(segment.blocks) and segment.blocks[neighbour].state == "inactive":
                other = segment.blocks.pop(neighbour)
                block.address, block.size = min(block.address, other.address), block.size + other.size
                at = segment.blocks.index(block)

    def free(self, address: int) -> None:
        self.request_free(address)
        self.complete_free(address)

    def empty_cache(self) -> None:
        for segment in list(self.segments):
            if len(segment.blocks) == 1 and segment.blocks[0].state == "inactive":
                self.segments.remove(segment)
                self.record("segment_free", segment.address, segment.size, segment.stream, frames=[])

    def snapshot(self, **more: Any) -> dict[str, Any]:
        return {
            "segments": [
                {
                    "device": 0,
                    "address": segment.address,
                    "total_size": segment.size,
                    "allocated_size": sum(b.size for b in segment.blocks if b.state == "active_allocated"),
                    "stream": segment.stream,
                    "segment_type": "small" if segment.small else "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": [
                        {
                            "address": block.address,
                            "size": block.size,
                            "requested_size": block.requested,
                            "state": block.state,
                            "frames": block.frames,
                        }
                        for block in segment.blocks
                    ],
                }
                for segment in self.segments
            ],
            "device_traces": [list(self.trace)],
            **more,
        }

    def _find(self, address: int) -> tuple[Segment, Block]:
        return next((s, b) for s in self.segments for b in s.blocks if b.address == address and b.state != "inactive")
