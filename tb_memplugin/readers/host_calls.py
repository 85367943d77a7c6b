"""Who called whom on the host: the stacks of events, and the steps and executions that they fall into."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.native.events import every
from tb_memplugin.native.nesting import enclosing, intern_chains
from tb_memplugin.readers.plane import Plane
from tb_memplugin.recording import I32, I64, NamedSpans, SpanKind, Stacks, Strings, Text

# A producer on one thread and its consumer on another carry the same pair of a type and an id.
LINKS = ("_pt", "_p", "_ct", "_c")
STEP_NUMBER = "step_num"
COLUMNS = {name: number for number, name in enumerate((*LINKS, STEP_NUMBER))}
PYTHON_FRAME = re.compile(r"\$(.+):(\d+) (.+)", re.DOTALL)
JITTED = re.compile(r"PjitFunction\((.+)\)", re.DOTALL)
MIXER = np.uint64(0x9E3779B97F4A7C15)
NUMBERED = 0x7FFFFFFF  # a step's number, 31 bits of it

Mask = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class HostCalls:
    """The tree of calls that some events were made in. Python frames have a file; the runtime's have none."""

    leaf: I32  # per wanted event: its innermost frame, -1 where nothing encloses it
    stacks: Stacks
    jitted: Text  # per frame: the jitted function that it is in or is, empty outside of any
    spans: NamedSpans


def no_calls(events: int) -> HostCalls:
    """Of so many events nothing is known yet."""
    nothing, none = Text.of([]), np.empty(0, dtype=np.int32)
    spans = NamedSpans(nothing, np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
    return HostCalls(np.full(events, -1, dtype=np.int32), Stacks(none, nothing, nothing, none), nothing, spans)


def host_calls(plane: Plane, wanted: Collection[int]) -> HostCalls:
    """Stacks of the events whose metadata id is in `wanted`, in file order. ValueError where the plane is damaged.

    A thread's own nesting comes first; where it ends at an event that another thread's caused, that thread's goes on.
    """
    names = list(plane.event_names.values())
    kinds = {key: kind for kind, key in enumerate(plane.event_names)}
    found = every(plane.data, kinds, {k: COLUMNS[n] for k, n in plane.stat_names.items() if n in COLUMNS})
    # Since the first line began: a clock that counts from 1970 is beyond 64 bits in picoseconds.
    begin = found["line_timestamp_ns"] - found["line_timestamp_ns"].min(initial=2**63 - 1)
    start, stop = found.pop("offset_ps"), found.pop("duration_ps")  # of millions of events: worked out in place
    start += np.repeat(begin * 1000, found["line_events"])
    np.maximum(stop, 0, out=stop)
    stop += start
    parent = enclosing(found["line_events"], start, stop)
    _link(parent, found)
    events = np.flatnonzero(_of_kinds(found["kind"], len(names), [kinds[key] for key in wanted]))
    leaf, node_parent, node_name = intern_chains(parent, found["kind"], events)
    labels = [names[name] if name >= 0 else "" for name in node_name.tolist()]
    frames = [PYTHON_FRAME.fullmatch(label) for label in labels]
    stacks = Stacks(
        parent=node_parent,
        function=Text.of([m[3] if m else label for m, label in zip(frames, labels, strict=True)]),
        file=Text.of([m[1] if m else "" for m in frames]),
        line=np.array([int(m[2]) if m else 0 for m in frames], dtype=np.int32),
    )
    return HostCalls(leaf, stacks, _jitted(labels, node_parent), _spans(names, found, start, stop))


def _of_kinds(kind: I32, kinds: int, chosen: Iterable[int]) -> Mask:
    """Events of the chosen kinds."""
    flags = np.zeros(kinds + 1, dtype=bool)  # the last is of those without a name
    flags[list(chosen)] = True
    mask: Mask = flags[kind]
    return mask


def _stat(found: dict[str, Any], name: str) -> tuple[I32, I64]:
    """The events that have the number, and the number."""
    rows = found["column"] == COLUMNS[name]
    return found["owner"][rows], found["value"][rows]


def _pair(found: dict[str, Any], kind: str, number: str) -> tuple[I32, U64]:
    """Of the events that have the id, a key of its type (0 where it has none) and itself."""
    events, ids = _stat(found, number)
    typed, types = _stat(found, kind)
    at = np.minimum(np.searchsorted(typed, events), max(len(typed) - 1, 0))
    kinds = np.where(typed[at] == events, types[at], 0) if len(typed) else np.zeros(len(events), np.int64)
    return events, ids.view(np.uint64) ^ (kinds.view(np.uint64) * MIXER)


def _link(parent: I32, found: dict[str, Any]) -> None:
    """Where a thread's own nesting ends, go on with the event that produced it, or the first thing that is in it."""
    producers, made = _pair(found, "_pt", "_p")
    consumers, asked = _pair(found, "_ct", "_c")
    if not len(producers) or not len(consumers):
        return
    order = np.argsort(made, kind="stable")
    at = np.minimum(np.searchsorted(made[order], asked), len(order) - 1)
    producer = producers[order][at]
    line = np.cumsum(found["line_events"])
    elsewhere = np.searchsorted(line, producer, "right") != np.searchsorted(line, consumers, "right")
    same = (made[order][at] == asked) & elsewhere
    root = _outermost(parent, consumers[same])
    # Of several links out of one root, the one of the outermost consumer counts: events come outermost first.
    parent[root[::-1]] = producer[same][::-1]


def _outermost(parent: I32, events: I32) -> I32:
    root = events.copy()
    while True:
        above = parent[root]
        if not (above >= 0).any():
            return root
        root = np.where(above >= 0, above, root)


def _jitted(labels: list[str], parent: I32) -> Text:
    """Frames come after the frames that they are in, so one pass does."""
    inside: list[str] = []
    for label, above in zip(labels, parent.tolist(), strict=True):
        match = JITTED.fullmatch(label)
        inside.append(match[1] if match else inside[above] if above >= 0 else "")
    return Text.of(inside)


def _spans(names: list[str], found: dict[str, Any], start_ps: I64, stop_ps: I64) -> NamedSpans:
    """Steps are events that carry a step number; executions are calls of jitted functions."""
    kind = found["kind"]
    jitted = {i: match[1] for i, name in enumerate(names) if (match := JITTED.fullmatch(name))}
    marked, told = _stat(found, STEP_NUMBER)
    number = np.full(len(kind), -1, dtype=np.int32)
    number[marked] = told & NUMBERED
    which = np.flatnonzero(((number >= 0) | _of_kinds(kind, len(names), jitted)) & (stop_ps > start_ps))
    which = which[np.argsort(start_ps[which], kind="stable")]
    # A step is its event's name and its number; an execution, of which there are many, only its function.
    distinct, code = np.unique((kind[which].astype(np.int64) << 32) + number[which], return_inverse=True)
    texts = [
        jitted[(pair + 1) >> 32] if pair & 0xFFFFFFFF > NUMBERED else f"{_named(names, pair >> 32)} {pair & NUMBERED}"
        for pair in distinct.tolist()
    ]
    kinds = np.where(number[which] >= 0, int(SpanKind.STEP), int(SpanKind.EXECUTION)).astype(np.uint8)
    return NamedSpans(
        Text(code.ravel().astype(np.int32), Strings.of(texts)), kinds, start_ps[which] // 1000, stop_ps[which] // 1000
    )


def _named(names: list[str], kind: int) -> str:
    return names[kind] if kind >= 0 else ""
