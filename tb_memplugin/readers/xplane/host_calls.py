"""Call stacks of host events."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U64
from tb_memplugin.model.tables import NamedSpans, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.native.xplane.nesting import enclosing, intern_chains
from tb_memplugin.readers.xplane.planes import Plane
from tb_memplugin.readers.xplane.spans import JITTED, PYTHON_FRAME, STAT_COLUMNS, HostEvents, host_spans

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class HostCalls:
    """Call stacks of selected events. Python frames have a file; frames of the runtime have none."""

    leaf: I32  # per selected event: its innermost frame; -1 where it has none
    stacks: Stacks
    jitted: Text  # per frame: the enclosing jitted function, or the frame's own; else empty
    spans: NamedSpans


def host_calls(plane: Plane, wanted: Collection[int]) -> HostCalls:
    """Read the stacks of the events whose metadata id is in `wanted`, in file order.

    A stack follows the nesting on the event's own thread. Where that ends at an event with a producer on another
    thread, the stack continues with the producer. Raises ValueError where the plane is damaged.
    """
    names = list(plane.event_names.values())
    kinds = plane.event_kinds
    columns = {key: STAT_COLUMNS[name] for key, name in plane.stat_names.items() if name in STAT_COLUMNS}
    found = every(plane.data, kinds, columns, budget=plane.budget)
    # Relative to the first line's start: picoseconds since 1970 exceed 64 bits.
    begin = found["line_timestamp_ns"] - found["line_timestamp_ns"].min(initial=2**63 - 1)
    start, stop = found.pop("offset_ps"), found.pop("duration_ps")  # updated in place, as there are millions
    start += np.repeat(begin * 1000, found["line_events"])
    np.maximum(stop, 0, out=stop)
    stop += start
    parent = enclosing(found["line_events"], start, stop)
    of_stat = {name: found["column"] == number for name, number in STAT_COLUMNS.items()}
    stats = {name: (found["owner"][which], found["value"][which]) for name, which in of_stat.items()}
    events = HostEvents(names, found["kind"], start, stop, parent, found["line_events"], stats)
    spans = host_spans(events)
    consumer, producer = _links(events.stats, start, np.cumsum(found["line_events"]))
    selected = np.flatnonzero(events.of_kinds([kinds[key] for key in wanted]))
    leaf, node_parent, node_name = intern_chains(parent, found["kind"], consumer, producer, selected)
    labels = [names[name] if name >= 0 else "" for name in node_name.tolist()]
    frames = [PYTHON_FRAME.fullmatch(label) for label in labels]
    files = [m[1] if m else "" for m in frames]
    jitted = _enclosing_jitted(labels, node_parent, files)
    stacks = Stacks(
        parent=node_parent,
        function=Text.of([m[3] if m else label for m, label in zip(frames, labels, strict=True)]),
        file=Text.of(files),
        line=np.array([int(m[2]) if m else 0 for m in frames], dtype=np.int32),
    )
    return HostCalls(leaf, stacks, jitted, spans)


def _pair(stats: dict[str, tuple[I32, I64]], kind: str, number: str) -> tuple[I32, U64]:
    """Return the events that have the id, and a hash of the id and its type (0 where the type is missing)."""
    events, ids = stats[number]
    typed, types = stats[kind]
    at = np.minimum(np.searchsorted(typed, events), max(len(typed) - 1, 0))
    kinds = np.where(typed[at] == events, types[at], 0) if len(typed) else np.zeros(len(events), np.int64)
    return events, ids.view(np.uint64) ^ (kinds.view(np.uint64) * HASH_MULTIPLIER)


def _links(stats: dict[str, tuple[I32, I64]], start_ps: I64, line_end: I64) -> tuple[I32, I32]:
    """Return events and their producers on other threads; if several have one id, the last that started before."""
    producers, producer_id = _pair(stats, "_pt", "_p")
    consumers, consumer_id = _pair(stats, "_ct", "_c")
    _, key = np.unique(np.r_[producer_id, consumer_id], return_inverse=True)
    _, time = np.unique(start_ps[np.r_[producers, consumers]], return_inverse=True)
    # One number per event that sorts by id, then by time.
    moment = key.ravel().astype(np.int64) * (len(time) + 1) + time.ravel()
    order = np.argsort(moment[: len(producers)], kind="stable")
    at = np.searchsorted(moment[: len(producers)][order], moment[len(producers) :], side="right") - 1
    found = np.flatnonzero(at >= 0)
    caused, cause = consumers[found], order[at[found]]
    same = producer_id[cause] == consumer_id[found]
    caused, by = caused[same], producers[cause[same]]
    elsewhere = np.searchsorted(line_end, by, "right") != np.searchsorted(line_end, caused, "right")
    return caused[elsewhere], by[elsewhere]


def _enclosing_jitted(labels: list[str], parent: I32, files: list[str]) -> Text:
    """Return the jitted function around each frame. Frames follow their parents, so one pass suffices.

    `files` are recorded without their folders; it is added, in place, where functions compiled ahead of time are called
    in JAX's own stages.py, a name that users have, too.
    """
    inside: list[str] = []
    for label, above in zip(labels, parent.tolist(), strict=True):
        called = JITTED.fullmatch(label)
        inside.append(called["function"] if called else inside[above] if above >= 0 else "")
        if called and called["ahead"] and above >= 0 and files[above] == "stages.py":
            files[above] = "jax/_src/stages.py"
    return Text.of(inside)
