"""A snapshot's devices as Recordings: the trace over time, or without one the one event of taking the snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.capture_info import CaptureInfo
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.torch_snapshot.addresses import places
from tb_memplugin.readers.torch_snapshot.annotations import read_spans
from tb_memplugin.readers.torch_snapshot.caveats import caveats
from tb_memplugin.readers.torch_snapshot.columns import labels, pools_and_streams, roles
from tb_memplugin.readers.torch_snapshot.frames import read_stacks
from tb_memplugin.readers.torch_snapshot.lifetimes import Lives, lifetimes
from tb_memplugin.readers.torch_snapshot.operators import operators
from tb_memplugin.readers.torch_snapshot.pickle_columns import NOTHING, Nodes, Values
from tb_memplugin.readers.torch_snapshot.pinned_memory import PINNED, UNSPLIT, read_pinned
from tb_memplugin.readers.torch_snapshot.segments import Blocks, Segments, read_segments
from tb_memplugin.readers.torch_snapshot.size_rounding import ROUNDED
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace, read_trace


def read_snapshot(data: bytes | memoryview, path: str, *, run: str, host: str) -> list[Recording]:
    """One recording per device that has a trace or memory, and one of pinned memory. InputError naming the file."""
    values = Values(data, path)
    root = values.root
    segments = values.items(root) if values.is_list(root) else values.items(values.get(root, "segments"))
    segments = segments[values.known(values.column(segments, "total_size"))]
    device = values.integers(values.column(segments, "device"), 0)
    traces = [values.items(node) for node in values.items(values.get(root, "device_traces")).tolist()]
    if not len(segments) and not traces and values.get(root, "host_segments") == NOTHING:
        remedy = "there are no segments and no device_traces in it; torch.cuda.memory._dump_snapshot writes both"
        raise InputError("Not a PyTorch memory snapshot", path, remedy)
    settings = _settings(values, values.get(root, "allocator_settings"))
    marks = values.items(values.get(root, "external_annotations"))
    where = run, host, path
    found = []
    for number, events in _devices(device, traces):
        trace, (held, blocks) = read_trace(values, events), read_segments(values, segments[device == number])
        spans = read_spans(values, marks, number, trace)
        rules = {**settings, ROUNDED: held.made_up}
        found.append(_recording(values, f"cuda:{number}", trace, held, blocks, rules, spans, where))
    pinned = read_pinned(values, root)
    if pinned is not None:
        found.append(_recording(values, PINNED, *pinned, UNSPLIT, None, where))
    return found


def _devices(device: I64, traces: list[Nodes]) -> Iterator[tuple[int, Nodes]]:
    """Devices that have a trace or segments, in order, each with its trace."""
    none = np.empty(0, dtype=np.uint32)
    for number in sorted({*device.tolist(), *range(len(traces))}):
        events = traces[number] if 0 <= number < len(traces) else none
        if len(events) or (device == number).any():
            yield number, events


def _settings(values: Values, node: int) -> dict[str, Any]:
    """The allocator's own, and in the same dict the divisions of `roundup_power2_divisions` by megabytes."""
    return {**dict(values.pairs(node)), **dict(values.pairs(values.get(node, "roundup_power2_divisions")))}


def _recording(
    values: Values,
    memory: str,
    trace: Trace,
    held: Segments,
    blocks: Blocks,
    settings: Mapping[str, Any],
    spans: NamedSpans | None,
    where: tuple[str, str, str],
) -> Recording:
    lives = lifetimes(trace, held, blocks, settings)
    n = len(trace)
    stacks, (of_event, of_block) = read_stacks(values, trace.frames, blocks.frames)
    stack = np.where(lives.block >= 0, np.r_[of_block, -1][lives.block], -1)
    stack = np.where(lives.born >= 0, np.r_[of_event, -1][lives.born], stack).astype(np.int32)
    end = np.where(lives.freed >= 0, lives.freed, max(n, 1))
    reserved = _held(trace, held) if n else np.array([int(held.size.sum())])
    regions, region, offset = places(trace, held, lives)
    clock, backwards = _clock(trace)
    run, host, path = where
    return Recording(
        kind=RecordingKind.TORCH_SNAPSHOT,
        title="snapshot",
        run=run,
        host=host,
        source=path,
        memory=memory,
        axis=Axis.TIME,
        length=max(n, 1),
        allocations=table_builder.allocations(
            lives.size,
            id=lives.address,
            requested=np.minimum(lives.requested, lives.size),
            start=lives.born,
            end=end,
            # In between its memory waits for other streams to be done with it.
            last_used=np.where(lives.asked_free >= 0, lives.asked_free, end),
            region=region,
            offset=offset,
            role=roles(trace, lives),
            stack=stack,
            name=operators(stacks, stack),
            op=pools_and_streams(trace, held, blocks, lives),
            scope=labels(trace, lives, values, blocks),
        ),
        regions=regions,
        stacks=stacks,
        clock=clock,
        spans=spans,
        free_stack=_freed_in(lives, of_event) if not held.made_up else None,
        held=reserved if not held.made_up else None,
        events=trace.name if n else Text.of(["snapshot"]),
        capture_info=CaptureInfo(time_ns=_began(trace)),
        out_of_memory=_out_of_memory(trace),
        caveats=caveats(trace, lives, settings, backwards),
    )


def _freed_in(lives: Lives, of_event: I32) -> I32:
    return np.where(lives.freed >= 0, np.r_[of_event, -1][lives.freed], -1).astype(np.int32)


def _clock(trace: Trace) -> tuple[I64 | None, int]:
    """(nanoseconds since the first event, how many events went back in time); PyTorch 2.1 told no time."""
    told = trace.time_us >= 0
    if not told.any():
        return None, 0
    time = np.maximum.accumulate(np.where(told, trace.time_us, 0))
    start = int(trace.time_us[told][0])
    return (np.maximum(time, start) - start) * 1000, int((np.diff(trace.time_us[told]) < 0).sum())


def _began(trace: Trace) -> int | None:
    told = trace.time_us[trace.time_us >= 0]
    return int(told[0]) * 1000 if len(told) else None


def _held(trace: Trace, segments: Segments) -> I64:
    """Bytes that the allocator has from the device after each event, worked out back from what it has in the end."""
    grown = np.isin(trace.action, [Action.SEGMENT_ALLOC, Action.SEGMENT_MAP])
    shrunk = np.isin(trace.action, [Action.SEGMENT_FREE, Action.SEGMENT_UNMAP])
    change = np.where(grown, trace.size, 0) - np.where(shrunk, trace.size, 0)
    held = np.cumsum(change)
    # As arrays: sums of damaged sizes wrap around, where numbers of Python would not fit.
    return np.asarray(held + (segments.size.sum(keepdims=True) - held[-1:]))


def _out_of_memory(trace: Trace) -> OutOfMemory | None:
    """The last time that the device had no room."""
    failed = np.flatnonzero(trace.action == Action.OOM)
    if not len(failed):
        return None
    last = failed[-1]
    free = int(trace.device_free[last])
    return OutOfMemory(asked=int(trace.size[last]), free=free if free >= 0 else None, phase=OutOfMemoryPhase.RUN)
