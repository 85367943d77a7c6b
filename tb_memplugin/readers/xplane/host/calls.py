"""Who called whom on the host: the stacks of events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import NamedSpans, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.native.xplane.nesting import enclosing, intern_chains
from tb_memplugin.readers.xplane.host.events import (
    DRIVER_CALL,
    GROUP,
    JITTED,
    LINKS,
    PYTHON_FRAME,
    RUN,
    STEP_NUMBER,
    HostEvents,
)
from tb_memplugin.readers.xplane.host.spans import host_spans
from tb_memplugin.readers.xplane.planes import Plane

COLUMNS = {name: number for number, name in enumerate((*LINKS, STEP_NUMBER, GROUP, RUN, DRIVER_CALL))}
MIXER = np.uint64(0x9E3779B97F4A7C15)

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
    events = HostEvents(names, found["kind"], start, stop, parent, found["line_events"], _stats(found))
    spans = host_spans(events)
    consumer, producer = _links(events.stats, start, np.cumsum(found["line_events"]))
    made = np.flatnonzero(events.of_kinds([kinds[key] for key in wanted]))
    leaf, node_parent, node_name = intern_chains(parent, found["kind"], consumer, producer, made)
    labels = [names[name] if name >= 0 else "" for name in node_name.tolist()]
    frames = [PYTHON_FRAME.fullmatch(label) for label in labels]
    stacks = Stacks(
        parent=node_parent,
        function=Text.of([m[3] if m else label for m, label in zip(frames, labels, strict=True)]),
        file=Text.of([m[1] if m else "" for m in frames]),
        line=np.array([int(m[2]) if m else 0 for m in frames], dtype=np.int32),
    )
    return HostCalls(leaf, stacks, _jitted(labels, node_parent), spans)


def _stats(found: dict[str, Any]) -> dict[str, tuple[I32, I64]]:
    rows = {name: found["column"] == column for name, column in COLUMNS.items()}
    return {name: (found["owner"][which], found["value"][which]) for name, which in rows.items()}


def _pair(stats: dict[str, tuple[I32, I64]], kind: str, number: str) -> tuple[I32, U64]:
    """The events that have the id, and a key of it and of its type (0 where it has none)."""
    events, ids = stats[number]
    typed, types = stats[kind]
    at = np.minimum(np.searchsorted(typed, events), max(len(typed) - 1, 0))
    kinds = np.where(typed[at] == events, types[at], 0) if len(typed) else np.zeros(len(events), np.int64)
    return events, ids.view(np.uint64) ^ (kinds.view(np.uint64) * MIXER)


def _links(stats: dict[str, tuple[I32, I64]], start_ps: I64, line_end: I64) -> tuple[I32, I32]:
    """Events, and those of other threads that caused them: of several with one id the last that began before."""
    producers, made = _pair(stats, "_pt", "_p")
    consumers, asked = _pair(stats, "_ct", "_c")
    _, key = np.unique(np.r_[made, asked], return_inverse=True)
    _, time = np.unique(start_ps[np.r_[producers, consumers]], return_inverse=True)
    # One number that sorts by the id and then by time.
    moment = key.ravel().astype(np.int64) * (len(time) + 1) + time.ravel()
    order = np.argsort(moment[: len(made)], kind="stable")
    at = np.searchsorted(moment[: len(made)][order], moment[len(made) :], side="right") - 1
    found = np.flatnonzero(at >= 0)
    caused, cause = consumers[found], order[at[found]]
    same = made[cause] == asked[found]
    caused, by = caused[same], producers[cause[same]]
    elsewhere = np.searchsorted(line_end, by, "right") != np.searchsorted(line_end, caused, "right")
    return caused[elsewhere], by[elsewhere]


def _jitted(labels: list[str], parent: I32) -> Text:
    """Frames come after the frames that they are in, so one pass does."""
    inside: list[str] = []
    for label, above in zip(labels, parent.tolist(), strict=True):
        match = JITTED.fullmatch(label)
        inside.append(match[1] if match else inside[above] if above >= 0 else "")
    return Text.of(inside)
