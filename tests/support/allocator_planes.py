"""Allocator events, synthetic or read by protobuf's own parser: one plain record per event."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.servers import DATA

from tb_memplugin.analysis.usage.live_bytes import explained_bytes
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace
from tb_memplugin.readers.xplane.allocator.recordings import read_allocators
from tb_memplugin.readers.xplane.planes import Plane

FREES = {"MemoryAllocation": False, "MemoryDeallocation": True}
REAL = sorted((DATA / "xplane").glob("*/plugins/profile/*/*.xplane.pb"))
# One of them is damaged and unreadable.
REAL = [path for path in REAL if path.parents[3].name != "xprof_tpu_inference_2"]


@dataclass(frozen=True)
class Event:
    free: bool
    time_ps: int  # since the start of the plane's first line
    line_offset_ps: int
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def memory(self) -> str:
        return (
            self.stats["allocator_name"]
            if "allocator_name" in self.stats
            else f"TPU core {self.stats['index_on_host']}"
        )

    @property
    def step(self) -> int:
        """Return the change of bytes in use that the event logs; a free on TPU logs none."""
        size: int = self.stats["allocation_bytes"]
        return -size if self.free else size


def events_of(path: Path) -> dict[str, list[Event]]:
    """Return the events by memory, in order of absolute time."""
    found: dict[str, list[Event]] = {}
    for plane in XSpace.FromString(path.read_bytes()).planes:
        if plane.name == b"/host:CPU":
            for event in _events(plane):
                found.setdefault(event.memory, []).append(event)
    return {memory: sorted(events, key=lambda event: event.time_ps) for memory, events in found.items()}


def _events(plane: XPlane) -> list[Event]:
    began = min(line.timestamp_ns for line in plane.lines)
    return [
        Event(
            FREES[plane.event_metadata[event.metadata_id].name.decode()],
            (line.timestamp_ns - began) * 1000 + event.offset_ps,
            event.offset_ps,
            {plane.stat_metadata[s.metadata_id].name.decode(): _value(plane, s) for s in event.stats},
        )
        for line in plane.lines
        for event in line.events
        if plane.event_metadata[event.metadata_id].name.decode() in FREES
    ]


def _value(plane: XPlane, stat: Any) -> Any:
    form = stat.WhichOneof("value")
    value = getattr(stat, form)
    if form == "ref_value":
        value = plane.stat_metadata[value].name
    return value.decode() if isinstance(value, bytes) else value


def recordings_of(path: Path) -> dict[str, Recording]:
    """Return the recordings by memory, with all their parts loaded."""
    found = [
        recording
        for plane in XSpace.FromString(path.read_bytes()).planes
        if plane.name == b"/host:CPU"
        for recording in read(plane)
    ]
    return {recording.memory: recording for recording in found}


def read(plane: XPlane) -> list[Recording]:
    return read_allocators(Plane(memoryview(plane.SerializeToString())), run="run", host="host", source="/x.xplane.pb")


class Log:
    """Build a plane of allocator events."""

    def __init__(self) -> None:
        self.plane = XPlane(name=b"/host:CPU")
        self._ids: dict[str, int] = {}
        for number, name in enumerate(FREES):
            self.plane.event_metadata[number].name = name.encode()

    def line(self, timestamp_ns: int = 0) -> Log:
        self.plane.lines.add(timestamp_ns=timestamp_ns)
        return self

    def add(self, free: bool, offset_ps: int, /, **stats: Any) -> Log:
        """Add an event to the last line. Text is stored inline, but `@text` by reference."""
        if not self.plane.lines:
            self.line()
        event = self.plane.lines[-1].events.add(metadata_id=int(free), offset_ps=offset_ps)
        for name, value in stats.items():
            stat = event.stats.add(metadata_id=self._id(name))
            if isinstance(value, float):
                stat.double_value = value
            elif isinstance(value, int):
                stat.int64_value = value
            elif value.startswith("@"):
                stat.ref_value = self._id(value[1:])
            else:
                stat.str_value = value.encode()
        return self

    def _id(self, name: str) -> int:
        number = self._ids.setdefault(name, len(self._ids))
        self.plane.stat_metadata[number].name = name.encode()
        return number

    def read(self) -> list[Recording]:
        return read(self.plane)

    def only(self) -> Recording:
        (recording,) = self.read()
        return recording


def same_number(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def unexplained(recording: Recording) -> list[int]:
    """Return the bytes of heap at each event that no row covers."""
    assert recording.reported is not None
    left: list[int] = (recording.reported.in_use - explained_bytes(recording)).tolist()
    return left
