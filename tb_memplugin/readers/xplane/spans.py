"""Named intervals of a host: steps, calls of programs, and user annotations. Executions of programs on TPU cores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import scan
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.readers.xplane.host_events import GROUP, JITTED, STEP_NUMBER, HostEvents, find_annotations
from tb_memplugin.readers.xplane.planes import NAME, Plane

STEP_NUMBER_MASK = 0x7FFFFFFF  # the low 31 bits of a step's number


@dataclass(frozen=True)
class _Spans:
    """Spans of one kind. Spans with equal `label` have the same name."""

    kind: SpanKind
    start_ps: I64
    stop_ps: I64
    label: I64
    names: dict[int, str]


def host_spans(events: HostEvents) -> NamedSpans:
    """Find the steps, executions and annotations of a host, ordered by start."""
    jitted = {i: match[1] for i, name in enumerate(events.names) if (match := JITTED.fullmatch(name))}
    calls = events.of_kinds(jitted)
    span_lists = [
        _steps(events),
        _of_events(SpanKind.EXECUTION, events, _outermost(events, np.flatnonzero(calls)), jitted),
        _of_events(
            SpanKind.ANNOTATION, events, np.flatnonzero(find_annotations(events, calls)), dict(enumerate(events.names))
        ),
    ]
    return _merge(span_lists)


def _steps(events: HostEvents) -> _Spans:
    """Return the events with a step number; without any, the time of each group of events is a step."""
    numbered, number = events.stats[STEP_NUMBER]
    if not len(numbered):
        return _groups(events)
    label = (events.kind[numbered].astype(np.int64) << 32) + (number & STEP_NUMBER_MASK)
    names = {
        code: f"{events.names[code >> 32] if code >= 0 else ''} {code & STEP_NUMBER_MASK}".lstrip()
        for code in np.unique(label).tolist()
    }
    return _Spans(SpanKind.STEP, events.start_ps[numbered], events.stop_ps[numbered], label, names)


def _groups(events: HostEvents) -> _Spans:
    grouped, number = events.stats[GROUP]
    groups, which = np.unique(number, return_inverse=True)
    start, stop = np.full(len(groups), 2**63 - 1), np.full(len(groups), -(2**63))
    np.minimum.at(start, which, events.start_ps[grouped])
    np.maximum.at(stop, which, events.stop_ps[grouped])
    # A group within another group's time is a part of its work, such as reading input, not a step of its own.
    order = np.lexsort((-stop, start))
    reach = np.maximum.accumulate(stop[order])
    outermost = order[np.r_[True, stop[order][1:] > reach[:-1]]] if len(order) else order
    names = {code: f"step {code}" for code in groups[outermost].tolist()}
    return _Spans(SpanKind.STEP, start[outermost], stop[outermost], groups[outermost], names)


def _of_events(kind: SpanKind, events: HostEvents, which: npt.NDArray[np.integer], names: dict[int, str]) -> _Spans:
    label = events.kind[which].astype(np.int64)
    return _Spans(kind, events.start_ps[which], events.stop_ps[which], label, names)


def _outermost(events: HostEvents, calls: I64) -> I64:
    """Drop calls directly nested in a call of the same function: JAX marks the call, and again its compiled part."""
    above = events.parent[calls]
    outermost_calls: I64 = calls[(above < 0) | (events.kind[above] != events.kind[calls])]
    return outermost_calls


def _merge(span_lists: list[_Spans]) -> NamedSpans:
    """Merge the spans in order of start, and drop those of zero length."""
    names: dict[str, int] = {}
    codes: list[I64] = []
    for spans in span_lists:
        labels, which = np.unique(spans.label, return_inverse=True)
        numbers = [names.setdefault(spans.names[label], len(names)) for label in labels.tolist()]
        codes.append(np.array(numbers, dtype=np.int64)[which.ravel()])
    start, stop = np.concatenate([s.start_ps for s in span_lists]), np.concatenate([s.stop_ps for s in span_lists])
    kind = np.repeat([int(s.kind) for s in span_lists], [len(s.start_ps) for s in span_lists])
    nonempty = np.flatnonzero(stop > start)
    order = nonempty[np.argsort(start[nonempty], kind="stable")]
    text = Text(np.concatenate(codes)[order].astype(np.int32), Strings.of(list(names)))
    return NamedSpans(text, kind[order].astype(np.uint8), start[order] // 1000, stop[order] // 1000)


CORE_PLANE = re.compile(r"/device:TPU:(\d+)")
MODULES_LINE = "XLA Modules"


def tpu_core_planes(planes: Sequence[Plane]) -> dict[str, Plane]:
    """Return the planes of TPU cores by the name of the core's memory, "TPU core 0"."""
    found = ((CORE_PLANE.fullmatch(plane.name), plane) for plane in planes)
    return {f"TPU core {match[1]}": plane for match, plane in found if match}


def module_spans(plane: Plane, start_ns: int) -> NamedSpans:
    """Return the executions of compiled programs, named by program key, in nanoseconds since `start_ns` of the profile.

    Only the "XLA Modules" line is read, as the other lines are most of the plane. Raises ValueError on a damaged plane.
    """
    lines = plane.lines
    names = scan(plane.data, NAME, lines, plane.budget)[""]["name"]
    module_lines = [row for row in range(len(lines.start)) if plane.text(names, row) == MODULES_LINE]
    kinds = {key: kind for kind, key in enumerate(plane.event_names)}
    found = every(plane.data, kinds, {}, lines.take(np.array(module_lines, dtype=np.int64)), plane.budget)
    begin = np.repeat(found["line_timestamp_ns"] - start_ns, found["line_events"])
    start = begin + found["offset_ps"] // 1000
    stop = begin + (found["offset_ps"] + found["duration_ps"]) // 1000
    order = np.flatnonzero(stop > start)
    order = order[np.argsort(start[order], kind="stable")]
    used, code = np.unique(found["kind"][order], return_inverse=True)  # most names of the plane are of instructions
    texts = list(plane.event_names.values())
    return NamedSpans(
        Text(code.ravel().astype(np.int32), Strings.of([texts[kind] if kind >= 0 else "" for kind in used.tolist()])),
        np.full(len(order), int(SpanKind.EXECUTION), dtype=np.uint8),
        start[order],
        stop[order],
    )


def merge_spans(host: NamedSpans, modules: NamedSpans) -> NamedSpans:
    """Merge a device's executions into the host's spans, whose calls, being only launches, become annotations."""
    if not len(modules):
        return host
    host_kind = np.where(host.kind == SpanKind.EXECUTION, int(SpanKind.ANNOTATION), host.kind)
    start = np.r_[host.start_ns, modules.start_ns]
    order = np.argsort(start, kind="stable")
    strings = Strings.joined(host.name.strings, modules.name.strings)
    codes = np.r_[host.name.codes, modules.name.codes + len(host.name.strings)].astype(np.int32)
    return NamedSpans(
        Text(codes[order], strings),
        np.r_[host_kind, modules.kind].astype(np.uint8)[order],
        start[order],
        np.r_[host.end_ns, modules.end_ns][order],
    )
