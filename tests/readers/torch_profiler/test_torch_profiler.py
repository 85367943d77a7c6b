"""Memory data written by torch.profiler: every sum, recomputed event by event."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers import DATA

from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file
from tb_memplugin.readers.torch_profiler.exported_timeline import CATEGORIES

TIMELINES = sorted((DATA / "torch_memory_timeline").glob("*.gz")) if DATA.exists() else []
TRACES = sorted((DATA / "torch_trace").glob("*.gz")) if DATA.exists() else []


def read(content: Any, name: str = "x.raw.json.gz") -> list[Recording]:
    data = json.dumps(content).encode()
    [part] = open_file(gzip.compress(data) if name.endswith("gz") else data, name, host="x")
    return part.read()


def by_category(recording: Recording, position: int) -> dict[str, int]:
    rows = recording.allocations
    found: dict[str, int] = defaultdict(int)
    for row in np.flatnonzero((rows.start <= position) & (position < rows.end)).tolist():
        found[rows.name[row]] += int(rows.size[row])
    return dict(found)


def plainest(content: list[list[int]], upto: int) -> dict[str, int]:
    """Return the bytes of each category after each number of events, without memory that predates the recording."""
    found: dict[str, int] = defaultdict(int)
    events = 0
    for _, action, change, category in content:
        events += action != 1
        if events > upto + 1:
            break
        found[CATEGORIES[category].name] += change
    return {name: size for name, size in found.items() if size}


@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.stem)
def test_a_real_timeline_has_the_sums_of_its_file_at_every_event(path: Path) -> None:
    content = json.loads(gzip.open(path).read())
    [part] = open_file(path.read_bytes(), str(path), host="x")
    [recording] = part.read()
    assert recording.length == sum(action != 1 for _, action, _, _ in content)
    for position in range(0, recording.length, 397):
        assert by_category(recording, position) == plainest(content, position)
    totals = np.cumsum([change for _, _, change, _ in content])
    assert peak(recording).bytes == totals.max()
    assert [caveat.code for caveat in recording.caveats] == ["no_identity"]


changes = st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([8, 16]), st.integers(0, 2)), max_size=40)


@given(changes=changes)
def test_every_free_ends_one_of_its_size_and_category(changes: list[tuple[int, int, int]]) -> None:
    live: dict[tuple[int, int], int] = defaultdict(int)
    content: list[list[int]] = []
    time = 10
    for action, size, category in changes:
        if action == 4 and not live[size, category]:
            continue
        if action == 1 and any(row[1] != 1 for row in content):
            continue
        time += 1
        live[size, category] += -1 if action == 4 else 1
        content.append([-1 if action == 1 else time, action, -size if action == 4 else size, category])
    if not content:
        return
    [recording] = read(content)
    for position in range(sum(row[1] != 1 for row in content)):
        assert by_category(recording, position) == plainest(content, position)


def test_a_free_without_an_allocation_is_counted() -> None:
    [recording] = read([[5, 2, 100, 0], [6, 4, -7, 0], [7, 4, -100, 0]])
    assert {caveat.code for caveat in recording.caveats} == {"no_identity", "free_without_allocation"}
    assert usage(recording).live.tolist() == [100, 100, 0]


def test_sums_alone() -> None:
    sizes = [[0, 5, 0, 0, 0, 0, 0, 0, 1], [0, 5, 0, 0, 0, 0, 3, 0, 1], [0, 0, 0, 0, 0, 0, 4, 0, 1]]
    [recording] = read([[10, 20, 30], sizes], "x.memory.json")
    assert usage(recording).live.tolist() == [6, 9, 5]
    assert recording.clock is not None and recording.clock.tolist() == [0, 10_000, 20_000]
    assert by_category(recording, 1) == {"parameter": 5, "gradient": 3, "unknown": 1}


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem[:12])
def test_a_real_trace_has_the_allocators_sums_and_explains_them(path: Path) -> None:
    events = [e for e in json.loads(gzip.open(path).read())["traceEvents"] if e.get("name") == "[memory]"]
    [part] = open_file(path.read_bytes(), str(path), host="x")
    for recording in part.read():
        number = {"cpu": (0, -1), "cuda:0": (1, 0), "hip:0": (6, 0)}[recording.memory]
        own = [e for e in events if (e["args"]["Device Type"], e["args"]["Device Id"]) == number]
        own.sort(key=lambda event: event["ts"])
        assert recording.length == len(own)
        if "Total Allocated" in own[0]["args"]:
            assert usage(recording).live.tolist() == [event["args"]["Total Allocated"] for event in own]
        if recording.memory != "cpu":
            # All memory predates the recording and is one row, so everything is explained at every event.
            assert (explained_bytes(recording) == usage(recording).live).all()
            assert recording.reserved is not None
            assert recording.reserved.tolist() == [event["args"]["Total Reserved"] for event in own]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.raw.json.gz", b"\x1f\x8bnothing"),
        ("x.raw.json.gz", gzip.compress(b"[[1, 2], [3]]", mtime=0)),
        ("x.raw.json.gz", gzip.compress(b"[1, 2, 3]", mtime=0)),
        ("x.memory.json", b'[["a"]]'),
        ("x.memory.json", b"[[1, 2, 3]]"),
        ("x.pt.trace.json", b'{"traceEvents": []}'),
        ("x.pt.trace.json", b'{"traceEvents": [{"name": "[memory]", "args": {"Bytes": "x"}}]}'),
        ("x.pt.trace.json", b'{"traceEvents": [{"name": "[memory]", "args": {"Bytes": 1e300}, "ts": 1}]}'),
        ("x.pt.trace.json", b'{"traceEvents": [{"name": "[memory]", "args": {"Bytes": ' + b"[" * 9999 + b"}}]}"),
        ("x.pt.trace.json.gz", gzip.compress(b"{", mtime=0)[:-9]),
    ],
)
def test_what_is_damaged_is_named(name: str, data: bytes) -> None:
    [part] = open_file(data, f"/logs/{name}", host="x")
    with pytest.raises(InputError, match="/logs/x"):
        part.read()


def head(category: str, name: str, thread: int, start: float, length: float) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, "ts": start, "dur": length, "args": {}}


def test_an_allocation_is_named_by_the_outermost_operator_of_its_thread() -> None:
    def memory(thread: int, time: float, address: int, size: int) -> dict[str, Any]:
        told = {"Addr": address, "Bytes": size, "Device Id": 0, "Device Type": 1}
        return {"ph": "i", "name": "[memory]", "pid": 7, "tid": thread, "ts": time, "args": told}

    events = [
        head("user_annotation", "ProfilerStep#4", 1, 10, 50),
        head("user_annotation", 'my "part"', 1, 12, 5),
        head("cpu_op", "aten::linear", 1, 20, 10),
        head("cpu_op", "aten::addmm", 1, 22, 5),
        head("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 21, 20),
        head("cpu_op", "aten::mm", 2, 23, 9),
        memory(1, 24, 100, 8),
        memory(2, 25, 200, 8),
        memory(1, 35, 300, 8),
        memory(1, 36, 100, -8),
    ]
    [recording] = read({"traceEvents": events}, "x.pt.trace.json")
    rows = recording.allocations
    assert [rows.name[row] for row in range(len(rows))] == ["aten::linear", "AddmmBackward0", ""]
    spans = recording.spans
    assert spans is not None
    assert [(spans.name[i], spans.kind[i], spans.start_ns[i], spans.end_ns[i]) for i in range(len(spans))] == [
        ("ProfilerStep#4", SpanKind.STEP, -14_000, 36_000),
        ('my "part"', SpanKind.ANNOTATION, -12_000, -7_000),
    ]


@pytest.mark.parametrize(
    "content",
    [
        [[10, 20], [[0, 5, 0, 0, 0, 0, 0, 0, 1], [0, 5, 0, 0, 0, 0, 3, 0, 1]]],
        [[5, 2, 100, 0], [6, 4, -100, 0]],
        {"traceEvents": [{"name": "[memory]", "tid": 1, "ts": 3, "args": {"Bytes": 8, "Addr": 1}}]},
    ],
)
def test_plain_json_is_told_by_its_beginning(content: Any) -> None:
    [recording] = read(content, "x.json")
    assert recording.kind == "torch_timeline"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem[:12])
def test_real_allocations_lie_in_the_operators_that_name_them(path: Path) -> None:
    content = json.loads(gzip.open(path).read())["traceEvents"]
    operators = [e for e in content if e.get("cat") == "cpu_op"]
    [part] = open_file(path.read_bytes(), str(path), host="x")
    gpu = next(recording for recording in part.read() if recording.memory != "cpu")
    own = [e for e in content if e.get("name") == "[memory]" and e["args"]["Device Type"] != 0]
    own.sort(key=lambda event: event["ts"])
    rows = gpu.allocations
    for row in np.flatnonzero(rows.start >= 0)[::40].tolist():
        event = own[rows.start[row]]
        around = [e for e in operators if e["tid"] == event["tid"] and e["ts"] <= event["ts"] <= e["ts"] + e["dur"]]
        outermost = min(around, key=lambda e: (e["ts"], -e["dur"]), default={"name": ""})
        assert rows.name[row] == outermost["name"].removeprefix("autograd::engine::evaluate_function: ")


def test_figures_that_cannot_be_cost_a_caveat_and_no_sum() -> None:
    fine = {"Addr": 64, "Bytes": 10, "Total Allocated": 10, "Total Reserved": 0, "Device Id": 0, "Device Type": 1}
    odd: list[dict[str, Any]] = [{"Bytes": 2**62}, {"Total Allocated": -(2**63)}, {"ts": 1e300}]
    events = [{"name": "[memory]", "ts": 1.5, "args": fine}]
    events += [{"name": "[memory]", "ts": 2.5, **change, "args": {**fine, **change}} for change in odd]
    events += [head("cpu_op", "\ud800", 1, 1e300, 1.0), head("cpu_op", "\ud800", 1, 1.0, 9.0)]
    raw = [[1, 1, 5, 0], [2, 2, 2**62, 0], [3, 2, -(2**63), 0], [4, 2, 7, 1]]
    sums = [[1, 2], [[0, 1 << 62, 7] + [0] * 6, [0, 3] + [0] * 7]]
    for name, content, live in (
        ("x.pt.trace.json", {"traceEvents": events}, [10]),
        ("x.raw.json", raw, [12]),
        ("x.memory.json", sums, [7, 3]),
    ):
        [part] = open_file(json.dumps(content).encode(), f"/logs/{name}", host="x")
        [recording] = part.read()
        assert usage(recording).live.tolist() == live
        assert "impossible_bytes" in {caveat.code for caveat in recording.caveats}
