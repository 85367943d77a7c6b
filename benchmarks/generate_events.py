"""A generated profile of a busy host with allocator events, for measuring Memory Profile.

Events are spread over 8 threads, and some are those of one GPU's allocator. The others are calls around the allocator
events, nested three deep and with the stats of the runtime's events. Without allocator events, they have no stats, like
Python frames. Equal numbers give equal bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tb_memplugin.protos.xplane_pb2 import XLine, XPlane, XSpace

LINES = 8
CALLS = ("$train.py:12 step", "PjitFunction(train_step)", "PJRT_LoadedExecutable_Execute", "Build buffer allocations")
ALLOCATION, DEALLOCATION = len(CALLS) + 1, len(CALLS) + 2
STATS = (
    "allocator_name", "bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use",
    "requested_bytes", "allocation_bytes", "addr", "id", "data_type", "GPU_0_bfc", "run_id", "device_ordinal",
    "fragmentation",
)  # fmt: skip
STAT = {name: number + 1 for number, name in enumerate(STATS)}
CAPACITY = 80 << 30
# Time between two allocator events; an enclosing call lasts for many of them.
STEP_PS = 1_000_000
RUN_ID = 0x9E3779B97F4A7C15  # odd, so that run ids are distinct, and as long as real ones


@dataclass(frozen=True)
class ExpectedEvents:
    """The figures that a reader must find."""

    events: int
    allocator_events: int
    peak_bytes: int


class _Allocator:
    """An allocator that never reuses an address."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._live: list[tuple[int, int]] = []
        self._next = 1 << 40
        self.in_use = self.peak = 0

    def step(self) -> tuple[bool, int, int]:
        """Make an event: (is a free, address, bytes). Frees are about as many as allocations."""
        if self._live and self._random.random() < 0.5:
            address, size = self._live.pop(self._random.randrange(len(self._live)))
            self.in_use -= size
            return True, address, size
        size = 256 * self._random.randint(1, 4096)
        address, self._next = self._next, self._next + size
        self._live.append((address, size))
        self.in_use += size
        self.peak = max(self.peak, self.in_use)
        return False, address, size


def generate(events: int, allocator_events: int, seed: int = 0) -> tuple[XSpace, ExpectedEvents]:
    """Generate a profile, and the figures that a reader must find in it."""
    space = XSpace(hostnames=[b"localhost"])
    plane = space.planes.add(name=b"/host:CPU")
    lines = [plane.lines.add(id=n, name=b"thread/%d" % n, timestamp_ns=1000) for n in range(LINES)]
    allocator = _Allocator(seed)
    calls_each = (events - allocator_events) // max(allocator_events, 1)
    for number in range(max(allocator_events, 1)):
        line, start = lines[number % LINES], (number + 1) * STEP_PS
        _calls(line, start, calls_each, with_stats=allocator_events > 0)
        if number < allocator_events:
            _report(line, start + STEP_PS // 2, allocator)
    while allocator_events == 0 and sum(len(line.events) for line in lines) < events:
        _calls(lines[0], (len(lines[0].events) + 1) * STEP_PS, len(CALLS), with_stats=False)
    _metadata(plane)
    total = sum(len(line.events) for line in lines)
    return space, ExpectedEvents(total, allocator_events, allocator.peak)


def _calls(line: XLine, start: int, count: int, *, with_stats: bool) -> None:
    for depth in range(count):
        name = depth % len(CALLS)
        event = line.events.add(metadata_id=name + 1, offset_ps=start + depth * 10, duration_ps=STEP_PS - 20 * depth)
        if with_stats:
            event.stats.add(metadata_id=STAT["run_id"], uint64_value=start * RUN_ID % 2**64)
            event.stats.add(metadata_id=STAT["device_ordinal"], int64_value=0)


def _report(line: XLine, start: int, allocator: _Allocator) -> None:
    freed, address, size = allocator.step()
    event = line.events.add(metadata_id=DEALLOCATION if freed else ALLOCATION, offset_ps=start)
    event.stats.add(metadata_id=STAT["allocator_name"], ref_value=STAT["GPU_0_bfc"])
    for name, value in (
        ("bytes_reserved", 0),
        ("bytes_allocated", allocator.in_use),
        ("bytes_available", CAPACITY - allocator.in_use),
        ("peak_bytes_in_use", allocator.peak),
        ("requested_bytes", size),
        ("allocation_bytes", size),
        ("addr", address),
        ("id", 0),
        ("data_type", 0),
    ):
        event.stats.add(metadata_id=STAT[name], int64_value=value)
    event.stats.add(metadata_id=STAT["fragmentation"], double_value=0.1)


def _metadata(plane: XPlane) -> None:
    for number, name in enumerate((*CALLS, "MemoryAllocation", "MemoryDeallocation"), start=1):
        plane.event_metadata[number].id, plane.event_metadata[number].name = number, name.encode()
    for name, number in STAT.items():
        plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, name.encode()
