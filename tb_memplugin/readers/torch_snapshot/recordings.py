"""Recordings of a snapshot's devices: the trace over time or, without a trace, the moment of the snapshot."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.model.tables import CachingAllocatorState, NamedSpans, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import HAS, IS, MAX_DEVICES, WAS, counted_caveat, impossible_bytes, too_many
from tb_memplugin.readers.common.part import Origin
from tb_memplugin.readers.torch_snapshot.labels import (
    labels,
    operators,
    pools_and_streams,
    read_spans,
    read_stacks,
    roles,
)
from tb_memplugin.readers.torch_snapshot.lifetimes import BlockLifetimes, lifetimes, locate_in_segments
from tb_memplugin.readers.torch_snapshot.pickle_values import NONE_NODE, PickleNodes, PickleValues
from tb_memplugin.readers.torch_snapshot.segments import ROUNDED, Blocks, Segments, read_segments
from tb_memplugin.readers.torch_snapshot.trace import PINNED, UNSPLIT, Trace, TraceAction, read_pinned, read_trace
from tb_memplugin.sizes import agree, counted


def read_snapshot(data: bytes | memoryview, path: str, *, run: str, host: str) -> list[Recording]:
    """Read one recording per device with a trace or memory, and one of pinned memory. Raises InputError."""
    values = PickleValues(data, path)
    root = values.root
    segments = values.items(root) if values.is_list(root) else values.items(values.get(root, "segments"))
    segments = segments[values.is_integer(values.column(segments, "total_size"))]
    device = values.integers(values.column(segments, "device"), 0)
    lists = values.items(values.get(root, "device_traces"))
    if (devices := max(len(lists), len(np.unique(device)))) > MAX_DEVICES:
        raise too_many("devices", devices, MAX_DEVICES, path)
    traces = [values.items(node) for node in lists.tolist()]
    if not len(segments) and not traces and values.get(root, "host_segments") == NONE_NODE:
        remedy = "it has neither segments nor device_traces; torch.cuda.memory._dump_snapshot writes both"
        raise InputError("Not a PyTorch memory snapshot", path, remedy)
    in_use = values.get(root, "allocator_settings")
    # Including `roundup_power2_divisions` under megabytes.
    settings = {**dict(values.pairs(in_use)), **dict(values.pairs(values.get(in_use, "roundup_power2_divisions")))}
    annotations = values.items(values.get(root, "external_annotations"))
    contents = deque[_Contents]()
    for number, events in _devices(device, traces):
        trace, (reserved, blocks) = read_trace(values, events), read_segments(values, segments[device == number])
        spans = read_spans(values, annotations, number, trace)
        rules = {**settings, ROUNDED: reserved.synthetic}
        stacks = read_stacks(values, trace.frames, blocks.frames)
        contents.append(_Contents(f"cuda:{number}", trace, reserved, blocks, rules, spans, *stacks))
    if (pinned := read_pinned(values, root)) is not None:
        trace, _, blocks = pinned
        stacks = read_stacks(values, trace.frames, blocks.frames)
        contents.append(_Contents(PINNED, *pinned, UNSPLIT, None, *stacks))
    budget = values.budget
    del values  # as large as the recordings
    found = []
    while contents:
        found.append(_recording(contents.popleft(), budget, Origin(run, host, path)))
    return found


@dataclass(frozen=True, eq=False)
class _Contents:
    """The contents of a snapshot for one memory."""

    memory: str
    trace: Trace
    segments: Segments
    blocks: Blocks
    settings: Mapping[str, Any]
    spans: NamedSpans | None
    stacks: Stacks
    leaves: list[I32]  # the stack of each event, and of each block


def _devices(device: I64, traces: list[PickleNodes]) -> Iterator[tuple[int, PickleNodes]]:
    """Yield the devices with a trace or segments, in order, each with its trace."""
    none = np.empty(0, dtype=np.uint32)
    for number in sorted({*device.tolist(), *range(len(traces))}):
        events = traces[number] if 0 <= number < len(traces) else none
        if len(events) or (device == number).any():
            yield number, events


def _recording(contents: _Contents, budget: ReadBudget, origin: Origin) -> Recording:
    trace, segments, blocks, stacks = contents.trace, contents.segments, contents.blocks, contents.stacks
    of_event, of_block = contents.leaves
    lives = lifetimes(trace, segments, blocks, contents.settings)
    n = len(trace)
    stack = np.r_[of_block, -1][lives.block]
    stack = np.where(lives.alloc_event >= 0, np.r_[of_event, -1][lives.alloc_event], stack).astype(np.int32)
    end = np.where(lives.free_event >= 0, lives.free_event, max(n, 1))
    reserved = _reserved_bytes(trace, segments) if n else np.array([int(segments.size.sum())])
    regions, region, offset = locate_in_segments(trace, segments, lives)
    clock, began_ns, backwards = _clock(trace)
    return Recording(
        **origin._asdict(),
        kind=RecordingKind.TORCH_SNAPSHOT,
        title="snapshot",
        memory=contents.memory,
        axis=Axis.TIME,
        length=max(n, 1),
        allocations=table_builder.allocations(
            lives.size,
            id=lives.address,
            requested=np.minimum(lives.requested, lives.size),
            start=lives.alloc_event,
            end=end,
            # From the request to the free, the block is pending until other streams no longer use it.
            last_used=np.where(lives.free_request_event >= 0, lives.free_request_event, end),
            region=region,
            offset=offset,
            role=roles(trace, lives),
            stack=stack,
            name=operators(stacks, stack),
            op=pools_and_streams(trace, segments, blocks, lives),
            op_name=labels(trace, lives, blocks, budget),
        ),
        regions=regions,
        stacks=stacks,
        clock=clock,
        spans=contents.spans,
        free_stack=np.r_[of_event, np.int32(-1)][lives.free_event] if not segments.synthetic else None,
        caching_allocator=CachingAllocatorState(
            reserved=reserved if not segments.synthetic else None,
            events=trace.name if n else Text.of(["snapshot"]),
        ),
        capture_info=CaptureInfo(time_ns=began_ns),
        capacity=_capacity(contents.settings),
        out_of_memory=_last_out_of_memory(trace),
        caveats=caveats(trace, lives, contents.settings, backwards),
    )


# Settings in a snapshot that torch_fit traced: the GPU, and the bytes of it that the allocator may reserve.
TRACED_FOR, USABLE_BYTES = "traced_for", "usable_bytes"
MAX_USABLE = 1 << 50


def _capacity(settings: Mapping[str, Any]) -> int | None:
    usable = settings.get(USABLE_BYTES)
    return usable if isinstance(usable, int) and 0 < usable < MAX_USABLE else None


def _clock(trace: Trace) -> tuple[I64 | None, int | None, int]:
    """Return nanoseconds since the first event, that event's time since 1970, and how many events go back in time.

    Before PyTorch 2.2, both times are None.
    """
    has_time = trace.time_us >= 0
    if not has_time.any():
        return None, None, 0
    time = np.maximum.accumulate(np.where(has_time, trace.time_us, 0))
    start = int(trace.time_us[has_time][0])
    backwards = int((np.diff(trace.time_us[has_time]) < 0).sum())
    return (np.maximum(time, start) - start) * 1000, start * 1000, backwards


def _reserved_bytes(trace: Trace, segments: Segments) -> I64:
    """Return the bytes reserved from the device after each event, computed back from the final segments."""
    grown = np.isin(trace.action, [TraceAction.SEGMENT_ALLOC, TraceAction.SEGMENT_MAP])
    shrunk = np.isin(trace.action, [TraceAction.SEGMENT_FREE, TraceAction.SEGMENT_UNMAP])
    change = np.where(grown, trace.size, 0) - np.where(shrunk, trace.size, 0)
    reserved = np.cumsum(change)
    # Array arithmetic: sums of damaged sizes wrap around instead of exceeding 64 bits.
    return np.asarray(reserved + (segments.size.sum(keepdims=True) - reserved[-1:]))


def _last_out_of_memory(trace: Trace) -> OutOfMemory | None:
    """Return the last out-of-memory event of the trace."""
    failures = np.flatnonzero(trace.action == TraceAction.OOM)
    if not len(failures):
        return None
    last = failures[-1]
    free = int(trace.device_free[last])
    return OutOfMemory(asked=int(trace.size[last]), free=free if free >= 0 else None, phase=OutOfMemoryPhase.RUN)


def caveats(trace: Trace, lives: BlockLifetimes, settings: Mapping[str, Any], backwards: int) -> tuple[Caveat, ...]:
    """Return the caveats of one device. `backwards`: number of events earlier than the one before them."""
    found: list[Caveat] = []
    if not len(trace):
        text = "The snapshot has no event trace: it shows only the moment at which it was taken."
        found.append(Caveat(CaveatCode.NO_TRACE, text))
    old = lives.alloc_event < 0
    if len(trace) and old.any():
        entries = settings.get("trace_alloc_max_entries")
        why = (
            f"the event buffer of {entries if isinstance(entries, int) else len(trace):,} entries wrapped"
            if settings.get("trace_alloc_overflowed")
            else "recording started later, or the event buffer wrapped"
        )
        count = int(old.sum())
        text = (
            f"{counted(count, 'allocation')} {agree(count, 'predates', 'predate')} the trace: {why}. "
            f"{agree(count, 'It is', 'They are')} live from before the first event."
        )
        found.append(Caveat(CaveatCode.OLDER_THAN_TRACE, text, int(lives.size[old].sum())))
    if len(trace) and not (trace.time_us >= 0).any():
        why = "they were traced without a GPU" if settings.get(TRACED_FOR) else "as before PyTorch 2.2"
        text = f"Events have no times, {why}; they are numbered instead."
        found.append(Caveat(CaveatCode.NO_TIME, text))
    for code, count, noun, verbs, rest in (
        (CaveatCode.ADDRESS_TAKEN, lives.address_taken, "allocation", WAS,
         "made at an address in use; the earlier one is considered freed"),
        (CaveatCode.NOT_IN_SEGMENTS, lives.unmatched, "allocation", IS,
         "never freed in the trace but missing from the final blocks"),
        (CaveatCode.ESTIMATED_SIZE, lives.estimated_sizes, "block", WAS,
         "freed before the size was recorded; it is a lower bound"),
        (CaveatCode.TIME_BACKWARDS, backwards, "event", IS,
         "earlier than the previous event; its time is used instead"),
        (CaveatCode.NO_ADDRESS, int((~trace.known & (trace.action == TraceAction.ALLOC)).sum()), "allocation", HAS,
         "no address"),
        (CaveatCode.UNKNOWN_ACTION, int((trace.action == TraceAction.OTHER).sum()), "event", HAS, "an unknown action"),
    ):  # fmt: skip
        found += counted_caveat(code, count, noun, verbs, rest)
    if len(trace) and not np.isin(trace.action, [TraceAction.FREE_REQUESTED, TraceAction.FREE_COMPLETED]).any():
        text = "The trace has no free events; recording them may have been disabled."
        found.append(Caveat(CaveatCode.NO_FREES, text))
    found += impossible_bytes(trace.impossible, "event", HAS, "impossible sizes, which are ignored")
    return tuple(found)
