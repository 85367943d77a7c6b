"""Hosts like a real one: its profile, with other figures for its devices and, on some, one more allocation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from benchmarks.pods.generated import Host
from benchmarks.pods.host_plane import DEVICE_PUT, EVENTS, THREAD, frame
from benchmarks.pods.real_threads import PLANE, number_names
from benchmarks.pods.tasks import Extra, Lifetime
from benchmarks.pods.wire import PLANES, field
from tb_memplugin.protos.xplane_pb2 import PlaneList, XEvent, XPlane

VARIANTS = 16
SPREAD_BYTES = 16 << 20  # by which hosts differ
BLOCK = 512
NAME, INDEX = "allocator_name", "index_on_host"
DEVICE = re.compile(r"TPU core \d+|GPU_\d+_bfc")
IN_USE, PEAK, FREE, RESERVED = "bytes_allocated", "peak_bytes_in_use", "bytes_available", "bytes_reserved"


class _Place(NamedTuple):
    """An event of an allocator, by the numbers of its line and of itself."""

    time_ps: int
    line: int
    event: int


class Real:
    """A source of hosts. Raises ValueError where the profile has no events of devices' allocators."""

    def __init__(self, content: bytes, seed: int) -> None:
        planes = list(PlaneList.FromString(content).planes)
        names = [XPlane.FromString(plane).name for plane in planes]
        self._others = [
            plane for plane, name in zip(planes, names, strict=True) if name not in (PLANE, b"Task Environment")
        ]
        self._plane, self._seed = XPlane.FromString(planes[names.index(PLANE)]), seed
        self._stats = {meta.name.decode(): key for key, meta in self._plane.stat_metadata.items()}
        self._events: dict[str, list[_Place]] = {}
        for memory, place in sorted(self._places(), key=lambda each: each[1]):
            self._events.setdefault(memory, []).append(place)
        self.memories = sorted(self._events)
        if not self.memories:
            raise ValueError("the profile has no events of devices' allocators")
        self._host = cache(self._new_host)

    def host(self, draw: Random, extras: Sequence[tuple[Extra, ...]], *, other_program: bool) -> Host:
        """Return a host. Raises ValueError for a fault that a real profile cannot have."""
        if other_program or any(extra.lifetime is not Lifetime.SPAN for each in extras for extra in each):
            raise ValueError("hosts like a real one have outliers, but no leaks and no other programs")
        return self._host(draw.randrange(VARIANTS), tuple(extras))

    def _new_host(self, variant: int, extras: tuple[tuple[Extra, ...], ...]) -> Host:
        """Return a host whose devices have some MiB more or less than the real ones, from before the recording."""
        draw = Random(f"{self._seed} {variant}")
        plane, peaks, capacities = XPlane(), list[int](), list[int]()
        plane.CopyFrom(self._plane)
        for memory, added in zip(self.memories, extras, strict=True):
            places = self._events[memory]
            more = draw.randrange(0, SPREAD_BYTES, BLOCK)
            events = [plane.lines[place.line].events[place.event] for place in places]
            before = max(range(len(events)), key=lambda at: self._total(events[at])) // 2  # of the peak
            for event in events:
                self._add(event, more)
            for extra in added:
                self._insert(plane, places[before], events[before], extra)
                for event in events[before + 1 :]:
                    self._add(event, extra.bytes)
            peaks.append(max(self._total(event) for event in events))
            capacities.append(max(self._total(event) + self._get(event, FREE) for event in events))
        return Host(
            [*(field(PLANES, other) for other in self._others), field(PLANES, plane.SerializeToString())],
            peaks,
            capacities,
        )

    def _places(self) -> Iterator[tuple[str, _Place]]:
        """Yield the allocators' events of devices, with their memory."""
        began = min(line.timestamp_ns for line in self._plane.lines)
        kinds = {key for key, meta in self._plane.event_metadata.items() if meta.name.decode() in EVENTS}
        for number, line in enumerate(self._plane.lines):
            for at, event in enumerate(line.events):
                if event.metadata_id in kinds and DEVICE.fullmatch(memory := self._memory(event)):
                    yield memory, _Place((line.timestamp_ns - began) * 1000 + event.offset_ps, number, at)

    def _memory(self, event: XEvent) -> str:
        for stat in event.stats:
            if stat.metadata_id == self._stats.get(NAME):
                return (stat.str_value or self._plane.stat_metadata[stat.ref_value].name).decode()
        return f"TPU core {self._get(event, INDEX)}"

    def _get(self, event: XEvent, name: str) -> int:
        return next((stat.int64_value for stat in event.stats if stat.metadata_id == self._stats.get(name)), 0)

    def _total(self, event: XEvent) -> int:
        return self._get(event, IN_USE) + self._get(event, RESERVED)

    def _add(self, event: XEvent, more: int) -> None:
        """Count more bytes as in use. Raises ValueError where fewer are free."""
        for stat in event.stats:
            if stat.metadata_id in (self._stats[IN_USE], self._stats[PEAK]):
                stat.int64_value += more
            elif stat.metadata_id == self._stats[FREE]:
                stat.int64_value -= more
                if stat.int64_value < 0:
                    raise ValueError(f"a device has no {more:,} bytes free")

    def _insert(self, plane: XPlane, place: _Place, after: XEvent, extra: Extra) -> None:
        """Add an allocation after an event, on a Python thread of its own."""
        ids = {meta.name.decode(): key for key, meta in plane.event_metadata.items()}
        calls = (THREAD, frame(extra.call), DEVICE_PUT)
        number_names((*calls, *EVENTS), ids, plane.event_metadata)
        line = plane.lines.add(id=1 << 40, name=b"python", timestamp_ns=plane.lines[place.line].timestamp_ns)
        time = after.offset_ps
        for depth, call in enumerate(calls):
            line.events.add(metadata_id=ids[call], offset_ps=time - 3 + depth, duration_ps=10 - 2 * depth)
        made = line.events.add(metadata_id=ids[EVENTS[0]], offset_ps=time)
        kept = {
            self._stats[name]
            for name in (NAME, INDEX, RESERVED, IN_USE, FREE, PEAK, "fragmentation")
            if name in self._stats
        }
        made.stats.extend(stat for stat in after.stats if stat.metadata_id in kept)
        for name, value in (("requested_bytes", extra.bytes), ("allocation_bytes", extra.bytes), ("addr", 1 << 45)):
            made.stats.add(metadata_id=self._stats[name], int64_value=value)
        self._add(made, extra.bytes)
