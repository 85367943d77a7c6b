"""Host threads built by hand, and the named intervals read from them."""

from __future__ import annotations

from support.allocator_planes import Log

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans

Span = tuple[str, int, int]  # name, start and end in ns


def spans(recording: Recording, kind: SpanKind) -> list[Span]:
    found = recording.spans
    assert found is not None
    return of_kind(found, kind)


def of_kind(found: NamedSpans, kind: SpanKind) -> list[Span]:
    rows = zip(range(len(found)), found.kind.tolist(), found.start_ns.tolist(), found.end_ns.tolist(), strict=True)
    return [(found.name[row], start, end) for row, told, start, end in rows if told == kind]


class Host:
    """Build a host with one allocator event, and events on its latest thread; times in ns."""

    def __init__(self) -> None:
        self.log = Log().add(False, 0, allocator_name="a", addr=1, allocation_bytes=8, bytes_allocated=8)
        self.plane = self.log.plane

    def add(self, name: str, start: int, end: int, **numbers: int) -> Host:
        key = next((k for k, m in self.plane.event_metadata.items() if m.name == name.encode()), None)
        key = max(self.plane.event_metadata) + 1 if key is None else key
        self.plane.event_metadata[key].name = name.encode()
        event = self.plane.lines[-1].events.add(
            metadata_id=key, offset_ps=start * 1000, duration_ps=(end - start) * 1000
        )
        for number, value in numbers.items():
            stat = next((k for k, m in self.plane.stat_metadata.items() if m.name == number.encode()), None)
            stat = max(self.plane.stat_metadata) + 1 if stat is None else stat
            self.plane.stat_metadata[stat].name = number.encode()
            event.stats.add(metadata_id=stat, int64_value=value)
        return self

    def thread(self) -> Host:
        self.log.line()
        return self

    def read(self) -> Recording:
        return self.log.only()
