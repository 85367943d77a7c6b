"""Stacks from nested events: on synthetic threads with known stacks, and against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.native.xplane.nesting import enclosing, intern_chains
from tb_memplugin.protos import xplane_pb2
from tb_memplugin.readers.xplane.host_calls import HostCalls, host_calls
from tb_memplugin.readers.xplane.planes import Plane

Event = tuple[str, int, int, dict[str, int]]  # name, start and duration in ps, stats


def calls(*lines: tuple[int, list[Event]]) -> HostCalls:
    """Return the stacks of the events named `alloc` on threads (timestamp in ns, events)."""
    plane = xplane_pb2.XPlane(name=b"/host:CPU")
    names: dict[str, int] = {}
    stats: dict[str, int] = {}
    for timestamp, events in lines:
        line = plane.lines.add(timestamp_ns=timestamp)
        for name, start, duration, numbers in events:
            event = line.events.add(
                metadata_id=names.setdefault(name, len(names) + 1), offset_ps=start, duration_ps=duration
            )
            for key, number in numbers.items():
                event.stats.add(metadata_id=stats.setdefault(key, len(stats) + 1), uint64_value=number)
    for name, number in names.items():
        plane.event_metadata[number].name = name.encode()
    for name, number in stats.items():
        plane.stat_metadata[number].name = name.encode()
    wanted = frozenset([names["alloc"]] if "alloc" in names else [])
    return host_calls(Plane(memoryview(plane.SerializeToString())), wanted)


def chain(found: HostCalls, event: int) -> list[str]:
    return [function for function, _, _ in found.stacks.frames(int(found.leaf[event]))]


def test_python_frames_are_told_from_the_runtime() -> None:
    found = calls((0, [("$train.py:12 step", 0, 100, {}), ("execute", 10, 50, {}), ("alloc", 20, 0, {})]))
    assert found.stacks.frames(int(found.leaf[0])) == [("execute", "", 0), ("step", "train.py", 12)]


def test_what_is_over_does_not_enclose() -> None:
    found = calls((0, [("a", 0, 10, {}), ("alloc", 10, 0, {}), ("b", 10, 5, {}), ("alloc", 15, 0, {})]))
    assert [chain(found, i) for i in range(2)] == [["b"], []]


def test_file_order_does_not_matter_within_a_thread() -> None:
    found = calls((0, [("alloc", 20, 0, {}), ("inner", 15, 10, {}), ("outer", 0, 100, {})]))
    assert chain(found, 0) == ["inner", "outer"]


def test_a_consumer_goes_on_in_its_producers_thread() -> None:
    worker = [("helper", 0, 90, {}), ("run", 10, 50, {"_ct": 3, "_c": 7}), ("alloc", 20, 0, {})]
    python = [
        ("PjitFunction(f)", 0, 100, {}),
        ("submit", 10, 20, {"_pt": 3, "_p": 7}),
        ("other", 50, 5, {"_pt": 4, "_p": 7}),
    ]
    found = calls((5, worker), (0, python))
    assert chain(found, 0) == ["run", "helper", "submit", "PjitFunction(f)"]
    assert found.jitted[int(found.leaf[0])] == "f"


def test_a_circle_of_links_ends() -> None:
    there = [("a", 0, 10, {"_pt": 1, "_p": 1, "_ct": 1, "_c": 2}), ("alloc", 5, 0, {})]
    back = [("b", 0, 10, {"_pt": 1, "_p": 2, "_ct": 1, "_c": 1})]
    assert chain(calls((0, there), (0, back)), 0)[0] == "a"


def test_steps_and_executions_are_spans_on_the_clock_of_the_profile() -> None:
    found = calls(
        (2, [("train", 1000, 9000, {"step_num": 4}), ("PjitFunction(f)", 2000, 1000, {})]), (1, [("alloc", 0, 0, {})])
    )
    spans = found.spans
    assert [spans.name[i] for i in range(len(spans))] == ["train 4", "f"]
    assert spans.kind.tolist() == [SpanKind.STEP, SpanKind.EXECUTION]
    assert (spans.start_ns.tolist(), spans.end_ns.tolist()) == ([2, 3], [11, 4])


def test_no_events_at_all() -> None:
    assert len(calls((0, [])).leaf) == 0


INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8)), max_size=25)


@given(INTERVALS)
def test_enclosing_beside_plain_python(intervals: list[tuple[int, int, int]]) -> None:
    intervals.sort(key=lambda interval: interval[0])
    line, start, length = (np.array(c, dtype=np.int64) for c in zip(*intervals, strict=True)) if intervals else (
        np.empty(0, np.int64),) * 3  # fmt: skip
    stop = start + length
    found = enclosing(np.bincount(line, minlength=3), start, stop)
    expected = np.full(len(line), -1)
    for number in sorted(set(line.tolist())):
        stack: list[int] = []
        mine = [i for i in range(len(line)) if line[i] == number]
        for i in sorted(mine, key=lambda i: (start[i], -stop[i], i)):
            while stack and stop[stack[-1]] <= start[i]:
                stack.pop()
            expected[i] = stack[-1] if stack else -1
            if stop[i] > start[i]:
                stack.append(i)
    assert found.tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 3), st.integers(-1, 30)), max_size=30))
def test_chains_beside_plain_python(events: list[tuple[int, int, int]]) -> None:
    """Order causes before effects, like enclosing events, so that no chain is a cycle."""
    parent = np.array([min(p, i - 1) for i, (p, _, _) in enumerate(events)], dtype=np.int32)
    name = np.array([n for _, n, _ in events], dtype=np.int32)
    cause = {i: min(c, i - 1) for i, (_, _, c) in enumerate(events) if i and c >= 0}
    consumer, producer = (np.array(list(side), dtype=np.int32) for side in (cause.keys(), cause.values()))
    leaf, node_parent, node_name = intern_chains(parent, name, consumer, producer, np.arange(len(events)))

    def names(event: int) -> list[int]:
        around = []
        while event >= 0:
            around.append(event)
            event = int(parent[event])
        caused = [event for event in around if event in cause]
        return [int(name[event]) for event in around] + (names(cause[caused[-1]]) if caused else [])

    def nodes(node: int) -> list[int]:
        return [int(node_name[node]), *nodes(int(node_parent[node]))] if node >= 0 else []

    assert [nodes(int(node)) for node in leaf] == [names(int(p)) for p in parent]
    distinct = {tuple(names(int(p))[k:]) for p in parent for k in range(len(names(int(p))))}
    assert len(node_parent) == len(distinct)


def test_each_task_of_a_thread_goes_on_with_what_caused_it() -> None:
    """Use one event around all tasks, as a thread's own loop may be."""
    tasks: list[Event] = [
        ("loop", 0, 100, {}),
        ("run", 10, 20, {"_ct": 1, "_c": 1}), ("alloc", 12, 0, {}),
        ("run", 40, 20, {"_ct": 1, "_c": 2}), ("alloc", 42, 0, {}),
        ("alloc", 90, 0, {}),
    ]  # fmt: skip
    causes: list[Event] = [("first", 1, 4, {"_pt": 1, "_p": 1}), ("second", 30, 4, {"_pt": 1, "_p": 2})]
    found = calls((0, tasks), (0, causes))
    assert [chain(found, i) for i in range(3)] == [["run", "loop", "first"], ["run", "loop", "second"], ["loop"]]


def test_an_id_that_is_used_again_is_the_last_one_s() -> None:
    tasks: list[Event] = [("run", at, 9, {"_ct": 1, "_c": 7}) for at in (0, 20, 40)]
    tasks += [("alloc", at + 1, 0, {}) for at in (0, 20, 40)]
    causes: list[Event] = [("first", 10, 4, {"_pt": 1, "_p": 7}), ("second", 30, 4, {"_pt": 1, "_p": 7})]
    found = calls((0, tasks), (0, causes))
    assert [chain(found, i) for i in range(3)] == [["run"], ["run", "first"], ["run", "second"]]
