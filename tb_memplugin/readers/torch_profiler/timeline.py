"""Recordings of PyTorch's profiler: memory over time, without stacks or segments."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.model.tables import CachingAllocatorState, NamedSpans, ReportedMemory
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder

NS_PER_US = 1000
FileOrigin = tuple[str, str, str]  # run, host, path


def timeline_recording(
    origin: FileOrigin,
    memory: str,
    clock: I64,
    start: I64,
    end: I64,
    size: I64,
    role: U8,
    name: Text,
    *,
    address: I64 | None = None,
    reported: ReportedMemory | None = None,
    reserved: I64 | None = None,
    spans: NamedSpans | None = None,
    caveats: Sequence[Caveat] = (),
) -> Recording:
    """Build a recording from rows that are live at start <= p < end; start -1 is before the first position.

    `clock`: nanoseconds per position. `spans`: intervals on the same clock.
    """
    run, host, path = origin
    first = int(clock[0]) if len(clock) else 0
    return Recording(
        kind=RecordingKind.TORCH_TIMELINE,
        title="timeline",
        run=run,
        host=host,
        source=path,
        memory=memory,
        axis=Axis.TIME,
        length=len(clock),
        allocations=table_builder.allocations(
            size, id=address, start=start, end=end, last_used=end, role=role, name=name
        ),
        regions=table_builder.no_regions(),
        stacks=table_builder.no_stacks(),
        clock=clock - first,
        capture_info=CaptureInfo(time_ns=first) if first else None,
        reported=reported,
        caching_allocator=None if reserved is None else CachingAllocatorState(reserved),
        spans=spans and NamedSpans(spans.name, spans.kind, spans.start_ns - first, spans.end_ns - first),
        caveats=tuple(caveats),
    )
