"""Who called whom on the host: the stacks of events, and the steps and executions that they fall into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.native.events import NUMBER, collect
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


def host_calls(plane: Plane, wanted: frozenset[int]) -> HostCalls:
    """Stacks of the events whose metadata id is in `wanted`, in file order. ValueError where the plane is damaged.

    A thread's own nesting comes first; where it ends at an event that another thread's caused, that thread's goes on.
    """
    kinds = {key: key for key in plane.event_names}
    found = collect(plane.data, kinds, {k: COLUMNS[n] for k, n in plane.stat_names.items() if n in COLUMNS})
    # Since the first line began: a clock that counts from 1970 is beyond 64 bits in picoseconds.
    begin = found["line_timestamp_ns"] - found["line_timestamp_ns"].min(initial=2**63 - 1)
    start = begin[found["line"]] * 1000 + found["offset_ps"]
    stop = start + np.maximum(found["duration_ps"], 0)
    parent = enclosing(found["line"], start, stop)
    _link(parent, found)
    events = np.flatnonzero(np.isin(found["kind"], list(wanted)))
    leaf, node_parent, names = intern_chains(parent, found["kind"], events)
    labels = [plane.event_names.get(name, "") for name in names.tolist()]
    frames = [PYTHON_FRAME.fullmatch(label) for label in labels]
    stacks = Stacks(
        parent=node_parent,
        function=Text.of([m[3] if m else label for m, label in zip(frames, labels, strict=True)]),
        file=Text.of([m[1] if m else "" for m in frames]),
        line=np.array([int(m[2]) if m else 0 for m in frames], dtype=np.int32),
    )
    spans = _spans(plane, found, start, stop)
    return HostCalls(leaf, stacks, _jitted(labels, node_parent), spans)


def _link(parent: I32, found: dict[str, Any]) -> None:
    """Where a thread's own nesting ends, go on with the event that produced it, or the first thing that is in it."""
    if found["value"].shape[1] <= COLUMNS["_c"]:
        return
    kind_p, id_p, kind_c, id_c = (found["value"][:, COLUMNS[name]].view(np.uint64) for name in LINKS)
    form, line = found["form"], found["line"]
    producers = np.flatnonzero(form[:, COLUMNS["_p"]] == NUMBER)
    consumers = np.flatnonzero(form[:, COLUMNS["_c"]] == NUMBER)
    if not len(producers) or not len(consumers):
        return
    made = id_p[producers] ^ (kind_p[producers] * MIXER)
    order = np.argsort(made, kind="stable")
    asked = id_c[consumers] ^ (kind_c[consumers] * MIXER)
    at = np.minimum(np.searchsorted(made[order], asked), len(order) - 1)
    producer = producers[order][at]
    same = (made[order][at] == asked) & (line[producer] != line[consumers])
    root = _outermost(parent, consumers[same])
    # Of several links out of one root, the one of the outermost consumer counts: events come outermost first.
    parent[root[::-1]] = producer[same][::-1]


def _outermost(parent: I32, events: I64) -> I64:
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


def _spans(plane: Plane, found: dict[str, Any], start_ps: I64, stop_ps: I64) -> NamedSpans:
    """Steps are events that carry a step number; executions are calls of jitted functions."""
    step = found["form"][:, COLUMNS[STEP_NUMBER]] == NUMBER if found["form"].shape[1] > COLUMNS[STEP_NUMBER] else None
    is_step = step if step is not None else np.zeros(len(start_ps), dtype=bool)
    jitted = {key: match[1] for key, name in plane.event_names.items() if (match := JITTED.fullmatch(name))}
    which = np.flatnonzero((is_step | np.isin(found["kind"], list(jitted))) & (stop_ps > start_ps))
    which = which[np.argsort(start_ps[which], kind="stable")]
    steps = is_step[which]
    number = found["value"][which, COLUMNS[STEP_NUMBER]] if step is not None else np.zeros(len(which), np.int64)
    # A step is its event's name and its number; an execution, of which there are many, only its function.
    pairs = (found["kind"][which] << 32) + np.where(steps, number, -1)
    distinct, code = np.unique(pairs, return_inverse=True)
    names = [
        f"{plane.event_names.get(pair >> 32, '')} {pair & 0xFFFFFFFF}" if stepped else jitted.get((pair + 1) >> 32, "")
        for pair, stepped in zip(distinct.tolist(), _first(steps, code), strict=True)
    ]
    kind = np.where(steps, int(SpanKind.STEP), int(SpanKind.EXECUTION)).astype(np.uint8)
    return NamedSpans(
        Text(code.ravel().astype(np.int32), Strings.of(names)), kind, start_ps[which] // 1000, stop_ps[which] // 1000
    )


def _first(flags: npt.NDArray[np.bool_], code: I64) -> list[bool]:
    """The flag of the first row with each code."""
    _, first = np.unique(code, return_index=True)
    chosen: list[bool] = flags[first].tolist()
    return chosen
