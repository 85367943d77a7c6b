"""The compiled loops over lifetimes, against plain Python, on arbitrary input and on valid traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.hlo.liveness import flow_uses, flow_values, hand_over, replay, use_ranges

ALLOC, FREE, SHARE_WITH = range(3)
LENGTH = 12  # positions in the schedule
ROWS = 6
same_each_time = settings(max_examples=300, derandomize=True)


def i32(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def i64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


class Event(NamedTuple):
    kind: int
    row: int
    shared: int = -1


@dataclass
class Replayed:
    """Return columns per row in the format of `replay`."""

    rows: int
    start: list[int] = field(init=False)
    end: list[int] = field(init=False)
    own: list[int] = field(init=False)
    charge: list[int] = field(init=False)
    canonical: list[int] = field(init=False)
    traced: list[int] = field(init=False)
    peak: int = 0
    odd: int = 0

    def __post_init__(self) -> None:
        self.start, self.end, self.own = ([-1] * self.rows for _ in range(3))
        self.charge, self.traced = [0] * self.rows, [0] * self.rows
        self.canonical = list(range(self.rows))


def windows(traces: list[list[Event]], defined: list[int]) -> list[tuple[int, int]]:
    """Return, per event, its position and that of the next event that has one; a FREE lies between the two."""
    found = []
    for trace in traces:
        here, stands = 0, []
        for event in trace:
            if event.kind != FREE and event.row >= 0:
                here = max(here, defined[event.row])
            stands.append(here)
        for i in range(len(trace)):
            after = [stands[j] for j in range(i + 1, len(trace)) if trace[j].kind != FREE]
            found.append((stands[i], after[0] if after else LENGTH))
    return found


def replay_by_hand(traces: list[list[Event]], size: list[int], defined: list[int], last_used: list[int]) -> Replayed:
    out = Replayed(len(size))
    holders = [0] * len(size)  # number of buffers that use a canonical row's memory
    charged = [-1] * len(size)  # the row that currently carries its charge
    live = 0
    events = [event for trace in traces for event in trace]
    for (kind, row, shared), (at, until) in zip(events, windows(traces, defined), strict=True):
        if kind == ALLOC and row >= 0 and not holders[out.canonical[row]]:
            out.canonical[row] = charged[row] = row
            out.charge[row] = size[row]
            holders[row] = 1
            live += size[row]
        elif kind == SHARE_WITH and row >= 0 and shared >= 0 and shared != row and out.traced[shared]:
            root = out.canonical[row] = out.canonical[shared]
            holders[root] += 1
            if holders[root] == 1:
                charged[root], out.charge[row] = row, size[root]
                live += size[root]
        elif kind == FREE and row >= 0 and out.traced[row] and holders[out.canonical[row]]:
            root = out.canonical[row]
            out.own[row] = min(max(last_used[row] + 1, at + 1), until)
            if row != charged[root]:
                out.end[row] = out.own[row]
            holders[root] -= 1
            if not holders[root]:
                out.end[charged[root]] = out.own[row]
                live -= size[root]
            continue
        else:
            out.odd += 1
            continue
        out.traced[row], out.start[row], out.end[row], out.own[row] = 1, at, LENGTH, LENGTH
        out.peak = max(out.peak, live)
    return out


def replay_compiled(traces: list[list[Event]], size: list[int], defined: list[int], last_used: list[int]) -> Replayed:
    events = [event for trace in traces for event in trace]
    out = Replayed(len(size))
    start, end, own, charge, canonical, traced, out.peak, out.odd = replay(
        i32([number for number, trace in enumerate(traces) for _ in trace]),
        np.array([event.kind for event in events], dtype=np.int8),
        i32([event.row for event in events]),
        i32([event.shared for event in events]),
        i64(size), i64(defined), i64(last_used), LENGTH,
    )  # fmt: skip
    out.start, out.end, out.own = start.tolist(), end.tolist(), own.tolist()
    out.charge, out.canonical, out.traced = charge.tolist(), canonical.tolist(), traced.tolist()
    return out


events = st.builds(Event, st.integers(0, 3), st.integers(-1, ROWS - 1), st.integers(-1, ROWS - 1))
traces = st.lists(st.lists(events, min_size=1, max_size=8), max_size=3)
sizes = st.lists(st.integers(0, 99), min_size=ROWS, max_size=ROWS)
positions = st.lists(st.integers(0, LENGTH - 1), min_size=ROWS, max_size=ROWS)


@same_each_time
@given(traces, sizes, positions, positions)
def test_any_trace(traces: list[list[Event]], size: list[int], defined: list[int], last_used: list[int]) -> None:
    assert replay_compiled(traces, size, defined, last_used) == replay_by_hand(traces, size, defined, last_used)


@st.composite
def sensible(draw: st.DrawFn) -> tuple[list[Event], list[int], list[int], list[int]]:
    """Return a trace like a compiler's: each row is allocated once, alone or shared with a live row, and freed once."""
    size: list[int] = draw(sizes)
    defined: list[int] = sorted(draw(positions))
    last_used = [draw(st.integers(at, LENGTH - 1)) for at in defined]
    trace, root, live = list[Event](), dict[int, int](), list[int]()
    for row in range(ROWS):
        for gone in [r for r in live if last_used[r] < defined[row]]:
            live.remove(gone)
            trace.append(Event(FREE, gone))
        if draw(st.booleans()) and live:
            root[row] = root[draw(st.sampled_from(live))]
            trace.append(Event(SHARE_WITH, row, root[row]))
        else:
            root[row] = row
            trace.append(Event(ALLOC, row))
        live.append(row)
    return [*trace, *(Event(FREE, row) for row in live)], size, defined, last_used


@same_each_time
@given(sensible())
def test_a_sensible_trace_is_placed_as_it_was_made(made: tuple[list[Event], list[int], list[int], list[int]]) -> None:
    trace, size, defined, last_used = made
    out = replay_compiled([trace], size, defined, last_used)
    assert out.odd == 0
    assert out.start == defined
    assert out.own == [last + 1 for last in last_used]
    live = [sum(out.charge[row] for row in range(ROWS) if out.start[row] <= p < out.end[row]) for p in range(LENGTH)]
    running, most, holders = 0, 0, dict[int, int]()
    for event in trace:
        root = out.canonical[event.row]
        holders[root] = holders.get(root, 0) + (-1 if event.kind == FREE else 1)
        running += size[root] if event.kind != FREE and holders[root] == 1 else 0
        running -= size[root] if event.kind == FREE and not holders[root] else 0
        most = max(most, running)
    assert out.peak == max(live) == most


claims = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 6), st.integers(0, 4), st.integers(0, 6)),
    max_size=10,
)


@same_each_time
@given(claims, st.data())
def test_bytes_are_handed_over(claimed: list[tuple[int, int, int, int, int]], data: st.DataObject) -> None:
    rows = sorted(claimed, key=lambda row: (row[0], row[1]))
    region, start, offset, size, life = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 5
    end = [s + n for s, n in zip(start, life, strict=True)]
    last_used = [data.draw(st.integers(s, e)) for s, e in zip(start, end, strict=True)]
    canonical = [data.draw(st.integers(0, row)) for row in range(len(rows))]
    ended, groups = i64(end), i32(canonical)
    conflicts = hand_over(i64(region), i64(offset), i64(size), i64(start), ended, i64(last_used), groups)

    def overlap(a: int, b: int) -> bool:
        in_region = size[a] and size[b] and region[a] == region[b]
        return bool(in_region and offset[a] < offset[b] + size[b] and offset[b] < offset[a] + size[a])

    expected = 0
    for row in (row for row in range(len(rows)) if end[row] > start[row]):
        earlier = [other for other in range(row) if overlap(row, other) and end[other] > start[row]]
        for other in sorted(earlier, key=lambda other: offset[other]):
            same = canonical[other] == canonical[row]
            expected += not same and last_used[other] > start[row]
            end[row] = max(end[row], end[other]) if same else end[row]
            end[other] = start[row]
            canonical[row] = canonical[other]
    assert (conflicts, ended.tolist(), groups.tolist()) == (expected, end, canonical)
    for a, b in combinations((row for row in range(len(rows)) if end[row] > start[row]), 2):
        assert not overlap(a, b) or end[a] <= start[b]


@dataclass
class Flow:
    target: int
    source: int
    count: int


NODES = 10
flows = st.lists(
    st.builds(Flow, st.integers(0, NODES - 3), st.integers(0, NODES - 3), st.integers(0, 3)), max_size=8
).map(lambda found: sorted(found, key=lambda flow: flow.target))
node_numbers = st.lists(st.integers(-1, 20), min_size=NODES, max_size=NODES)


def flow_columns(found: list[Flow]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return i32([f.target for f in found]), i32([f.source for f in found]), i32([f.count for f in found])


@same_each_time
@given(node_numbers, flows)
def test_values_flow_to_nodes_that_have_none(value: list[int], found: list[Flow]) -> None:
    compiled = i32(value)
    flow_values(compiled, *flow_columns(found))
    for flow in found:
        for k in range(flow.count):
            if value[flow.target + k] < 0:
                value[flow.target + k] = value[flow.source + k]
    assert compiled.tolist() == value


@same_each_time
@given(node_numbers, flows, st.lists(st.booleans(), min_size=NODES, max_size=NODES), node_numbers)
def test_uses_flow_back_to_the_source(
    last: list[int], found: list[Flow], defines: list[bool], position: list[int]
) -> None:
    compiled = i32(last)
    flow_uses(compiled, *flow_columns(found), np.array(defines, dtype=np.uint8), i32(position))
    for flow in reversed(found):
        for k in range(flow.count):
            target, source = flow.target + k, flow.source + k
            last[source] = max(last[source], position[target] if defines[target] else last[target])
    assert compiled.tolist() == last


@same_each_time
@given(node_numbers, flows, node_numbers)
def test_reads_count_for_every_node_of_their_range(last: list[int], found: list[Flow], position: list[int]) -> None:
    compiled = i32(last)
    use_ranges(
        compiled,
        i32([f.target for f in found]),
        i32([f.count for f in found]),
        i32([position[f.source] for f in found]),
    )
    for flow in found:
        for node in range(flow.target, flow.target + flow.count):
            last[node] = max(last[node], position[flow.source])
    assert compiled.tolist() == last
