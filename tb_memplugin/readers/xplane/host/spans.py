"""The named intervals of a host: steps, calls of compiled programs, and what the user put around those."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.readers.xplane.host.annotations import annotated
from tb_memplugin.readers.xplane.host.events import GROUP, JITTED, STEP_NUMBER, HostEvents

NUMBERED = 0x7FFFFFFF  # a step's number, 31 bits of it


@dataclass(frozen=True)
class _Found:
    """Spans of one kind; those with one `label` have one name."""

    kind: SpanKind
    start_ps: I64
    stop_ps: I64
    label: I64
    names: dict[int, str]


def host_spans(events: HostEvents) -> NamedSpans:
    jitted = {i: match[1] for i, name in enumerate(events.names) if (match := JITTED.fullmatch(name))}
    calls = events.of_kinds(jitted)
    found = [
        _steps(events),
        _of_events(SpanKind.EXECUTION, events, _outermost(events, np.flatnonzero(calls)), jitted),
        _of_events(
            SpanKind.ANNOTATION, events, np.flatnonzero(annotated(events, calls)), dict(enumerate(events.names))
        ),
    ]
    return _joined(found)


def _steps(events: HostEvents) -> _Found:
    """Events that carry a step's number; where none does, all that a group's events take up is a step."""
    marked, number = events.stats[STEP_NUMBER]
    if not len(marked):
        return _groups(events)
    label = (events.kind[marked].astype(np.int64) << 32) + (number & NUMBERED)
    names = {
        code: f"{events.names[code >> 32] if code >= 0 else ''} {code & NUMBERED}".lstrip()
        for code in np.unique(label).tolist()
    }
    return _Found(SpanKind.STEP, events.start_ps[marked], events.stop_ps[marked], label, names)


def _groups(events: HostEvents) -> _Found:
    grouped, number = events.stats[GROUP]
    groups, which = np.unique(number, return_inverse=True)
    start, stop = np.full(len(groups), 2**63 - 1), np.full(len(groups), -(2**63))
    np.minimum.at(start, which, events.start_ps[grouped])
    np.maximum.at(stop, which, events.stop_ps[grouped])
    # A group within another's time is a side of its work, as the input that it reads, and no step beside it.
    order = np.lexsort((-stop, start))
    reach = np.maximum.accumulate(stop[order])
    whole = order[np.r_[True, stop[order][1:] > reach[:-1]]] if len(order) else order
    names = {code: f"step {code}" for code in groups[whole].tolist()}
    return _Found(SpanKind.STEP, start[whole], stop[whole], groups[whole], names)


def _of_events(kind: SpanKind, events: HostEvents, which: npt.NDArray[np.integer], names: dict[int, str]) -> _Found:
    label = events.kind[which].astype(np.int64)
    return _Found(kind, events.start_ps[which], events.stop_ps[which], label, names)


def _outermost(events: HostEvents, calls: I64) -> I64:
    """Without those right inside a call of the same: JAX marks the call, and again what is compiled of it."""
    above = events.parent[calls]
    kept: I64 = calls[(above < 0) | (events.kind[above] != events.kind[calls])]
    return kept


def _joined(found: list[_Found]) -> NamedSpans:
    """In order of time; without those that last for no time."""
    names: dict[str, int] = {}
    codes: list[I64] = []
    for spans in found:
        labels, which = np.unique(spans.label, return_inverse=True)
        numbers = [names.setdefault(spans.names[label], len(names)) for label in labels.tolist()]
        codes.append(np.array(numbers, dtype=np.int64)[which.ravel()])
    start, stop = np.concatenate([s.start_ps for s in found]), np.concatenate([s.stop_ps for s in found])
    kind = np.repeat([int(s.kind) for s in found], [len(s.start_ps) for s in found])
    lasting = np.flatnonzero(stop > start)
    order = lasting[np.argsort(start[lasting], kind="stable")]
    text = Text(np.concatenate(codes)[order].astype(np.int32), Strings.of(list(names)))
    return NamedSpans(text, kind[order].astype(np.uint8), start[order] // 1000, stop[order] // 1000)
