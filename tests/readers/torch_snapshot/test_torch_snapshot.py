"""PyTorch snapshots, against a plain replay and an allocator that tracks every block."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.caching_allocator import MIB, CachingAllocator
from support.servers import DATA

from tb_memplugin.analysis.fragmentation import fragmentation, holes
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import Axis, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds.memory_profile import figures
from tb_memplugin.questions.recording.details import details
from tb_memplugin.readers import open_file

SNAPSHOTS = sorted((DATA / "torch_snapshot").glob("*.pickle")) if DATA.exists() else []
LIVE = {"active_allocated", "active_pending_free", "active_awaiting_free"}


def read(snapshot: Any, name: str = "snapshot.pickle") -> list[Recording]:
    data = json.dumps(snapshot).encode() if name.endswith("json") else pickle.dumps(snapshot)
    [part] = open_file(data, name, host="snapshot")
    return part.read()


def last_blocks(snapshot: dict[str, Any]) -> Counter[tuple[int, int]]:
    return Counter(
        (block["address"], block["size"])
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] in LIVE
    )


def live_at(recording: Recording, position: int) -> Counter[tuple[int, int]]:
    rows = recording.allocations
    here = (rows.start <= position) & (position < rows.end)
    return Counter(zip(rows.id[here].tolist(), rows.size[here].tolist(), strict=True))


def plainest_live(snapshot: dict[str, Any]) -> list[int]:
    """Return the requested bytes that are live after each event, starting at an allocation, with one dict."""
    live: dict[int, int] = {}
    found = []
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
        found.append(sum(live.values()))
    return found


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_the_replay_of_a_real_trace_ends_in_its_blocks(path: Path) -> None:
    snapshot = pickle.loads(path.read_bytes())
    [part] = open_file(path.read_bytes(), str(path), host="gpu")
    [recording] = part.read()
    rows, n = recording.allocations, recording.length
    assert n == len(snapshot["device_traces"][0])
    assert live_at(recording, n - 1) == last_blocks(snapshot)
    of_trace = rows.start >= 0
    for position, expected in list(enumerate(plainest_live(snapshot)))[:: max(n // 500, 1)]:
        here = of_trace & (rows.start <= position) & (position < rows.end)
        assert rows.requested[here].sum() == expected
    assert (rows.requested <= rows.size).all()
    assert recording.reserved is not None
    assert recording.reserved[-1] == sum(segment["total_size"] for segment in snapshot["segments"])
    assert (usage(recording).live <= recording.reserved).all()


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_stacks_of_a_real_trace(path: Path) -> None:
    snapshot = pickle.loads(path.read_bytes())
    [part] = open_file(path.read_bytes(), str(path), host="gpu")
    [recording] = part.read()
    rows = recording.allocations
    events = snapshot["device_traces"][0]
    for row in np.flatnonzero(rows.start >= 0)[::50].tolist():
        frames = recording.stacks.frames(int(rows.stack[row]))
        told = events[rows.start[row]]["frames"]
        assert [function for function, _, _ in frames] == [frame["name"] for frame in told]
        assert [line for _, file, line in frames if file] == [f["line"] for f in told if f["filename"].endswith(".py")]
        assert recording.free_stack is not None
        if rows.end[row] < recording.length:
            freed = recording.stacks.frames(int(recording.free_stack[row]))
            assert [function for function, _, _ in freed] == [f["name"] for f in events[rows.end[row]]["frames"]]


def test_the_peak_of_a_real_trace_is_what_torch_says_of_it() -> None:
    """Compare PyTorch's allocated_size of all segments with our bytes: both count blocks, never requested bytes."""
    for path in SNAPSHOTS:
        snapshot = pickle.loads(path.read_bytes())
        [part] = open_file(path.read_bytes(), str(path), host="gpu")
        [recording] = part.read()
        assert usage(recording).live[-1] == sum(segment["allocated_size"] for segment in snapshot["segments"])


sizes = st.sampled_from([1, 300, 512, 513, 4096, 700_000, MIB, MIB + 1, 3 * MIB, 9 * MIB, 11 * MIB, 30 * MIB])
doings = st.lists(
    st.tuples(st.sampled_from(["alloc", "alloc", "alloc", "free", "free", "late", "complete", "empty"]), sizes),
    min_size=1,
    max_size=80,
)


def act(allocator: CachingAllocator, doings: list[tuple[str, int]]) -> None:
    live: list[int] = []
    pending: list[int] = []
    for doing, size in doings:
        if doing == "alloc":
            address = allocator.alloc(size, [{"name": "f", "filename": "train.py", "line": size % 100}], size % 2)
            live += [address] if address is not None else []
        elif doing == "free" and live:
            allocator.free(live.pop(size % len(live)))
        elif doing == "late" and live:
            pending.append(live.pop(size % len(live)))
            allocator.request_free(pending[-1])
        elif doing == "complete" and pending:
            allocator.complete_free(pending.pop(0))
        elif doing == "empty":
            allocator.empty_cache()


@settings(max_examples=150)
@given(doings=doings)
def test_every_block_is_as_large_as_the_allocator_made_it(doings: list[tuple[str, int]]) -> None:
    allocator = CachingAllocator(limit=256 * MIB)
    act(allocator, doings)
    if not allocator.trace:
        return
    snapshot = allocator.snapshot()
    [recording] = read(snapshot)
    rows = recording.allocations
    born = rows.start >= 0
    assert dict(zip(rows.start[born].tolist(), rows.size[born].tolist(), strict=True)) == allocator.truth
    assert live_at(recording, recording.length - 1) == last_blocks(snapshot)
    assert not [caveat for caveat in recording.caveats if caveat.code != "no_frees"]


@settings(max_examples=100)
@given(doings=doings, kept=st.integers(1, 60))
def test_a_trace_that_lost_its_beginning_still_ends_in_its_blocks(doings: list[tuple[str, int]], kept: int) -> None:
    allocator = CachingAllocator()
    act(allocator, doings)
    allocator.trace = allocator.trace[-kept:]
    if not allocator.trace:
        return
    snapshot = allocator.snapshot(allocator_settings={"trace_alloc_overflowed": True, "trace_alloc_max_entries": kept})
    [recording] = read(snapshot)
    assert live_at(recording, recording.length - 1) == last_blocks(snapshot)
    old = recording.allocations.start < 0
    told = {str(caveat.code): caveat.bytes for caveat in recording.caveats}
    assert told.get("older_than_trace") == (int(recording.allocations.size[old].sum()) if old.any() else None)


def test_memory_that_waits_for_another_stream_is_live_until_it_is_free() -> None:
    allocator = CachingAllocator()
    address = allocator.alloc(5 * MIB)
    assert address is not None
    allocator.request_free(address)
    allocator.alloc(100)
    allocator.complete_free(address)
    [recording] = read(allocator.snapshot())
    rows = recording.allocations
    events = [event["action"] for event in allocator.trace]
    assert (rows.start[0], rows.end[0]) == (events.index("alloc"), events.index("free_completed"))
    assert rows.last_used[0] == events.index("free_requested")


def test_running_out_of_memory_is_marked_with_what_was_asked_and_free() -> None:
    allocator = CachingAllocator(limit=50 * MIB)
    allocator.alloc(30 * MIB)
    assert allocator.alloc(40 * MIB) is None
    [recording] = read(allocator.snapshot())
    assert recording.out_of_memory is not None and recording.spans is not None
    assert (recording.out_of_memory.asked, recording.out_of_memory.free) == (40 * MIB, 20 * MIB)
    [mark] = np.flatnonzero(recording.spans.kind == SpanKind.OUT_OF_MEMORY)
    assert recording.spans.name[int(mark)] == "out of memory: 40.0 MiB requested, 20.0 MiB free"


def test_what_was_within_reach_when_memory_ran_out_is_a_figure() -> None:
    allocator = CachingAllocator(limit=60 * MIB)
    for size in (21, 90, 5, 80):
        allocator.alloc(size * MIB)
    shown = {figure.key: figure.bytes for figure in figures(read(allocator.snapshot())[0])}
    assert shown["within_reach"] == 60 * MIB
    fine = CachingAllocator()
    fine.alloc(MIB)
    assert "within_reach" not in {figure.key for figure in figures(read(fine.snapshot())[0])}


def test_annotations_and_steps_are_spans() -> None:
    allocator = CachingAllocator()
    start = allocator.clock + 7
    allocator.alloc(512)
    allocator.alloc(512)
    marks = [
        {"device": 0, "time_us": start + 1, "name": "ProfilerStep#3", "stage": "START"},
        {"device": 0, "time_us": start + 2, "name": "Optimizer.step#SGD.step", "stage": "START"},
        {"device": 0, "time_us": start + 4, "name": "Optimizer.step#SGD.step", "stage": "END"},
        {"device": 0, "time_us": start + 5, "name": "ProfilerStep#3", "stage": "END"},
        {"device": 1, "time_us": start + 5, "name": "elsewhere", "stage": "START"},
    ]
    [recording] = read(allocator.snapshot(external_annotations=marks))
    spans = recording.spans
    assert spans is not None
    assert [(spans.name[i], spans.kind[i], spans.start_ns[i], spans.end_ns[i]) for i in range(len(spans))] == [
        ("ProfilerStep#3", SpanKind.STEP, 1000, 5000),
        ("Optimizer.step#SGD.step", SpanKind.ANNOTATION, 2000, 4000),
    ]


def versions() -> list[tuple[str, Any]]:
    """Read the same memory as several versions of PyTorch wrote it."""
    allocator = CachingAllocator()
    kept, gone = allocator.alloc(3 * MIB, [{"name": "f", "filename": "a.py", "line": 3}]), allocator.alloc(700)
    assert kept is not None and gone is not None
    allocator.free(gone)
    new = allocator.snapshot(allocator_settings={"expandable_segments": False}, external_annotations=[])
    plain = json.loads(json.dumps(new))
    without_time = json.loads(json.dumps(new))
    for event in without_time["device_traces"][0]:
        del event["time_us"]
    for segment in without_time["segments"]:
        for block in segment["blocks"]:
            del block["address"]
    negative = json.loads(json.dumps(new))
    for segment in negative["segments"]:
        for block in segment["blocks"]:
            block["address"] -= 1 << 60
        segment["address"] -= 1 << 60
    for event in negative["device_traces"][0]:
        event["addr"] -= 1 << 60
    spelt = json.loads(json.dumps(new).replace("active_allocated", "active_awaiting_free"))
    high = json.loads(json.dumps(negative).replace('address": -', 'address": ').replace('addr": -', 'addr": '))
    return [
        ("new", new),
        ("no sharing", plain),
        ("2.1", without_time),
        ("negative", negative),
        ("spelt", spelt),
        ("high", high),
    ]


@pytest.mark.parametrize(("name", "snapshot"), versions(), ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("file", ["snapshot.pickle", "snapshot.json"])
def test_every_age_of_snapshot(name: str, snapshot: dict[str, Any], file: str) -> None:
    [recording] = read(snapshot, file)
    assert recording.allocations.size.tolist() == [3 * MIB, 1024]
    assert peak(recording).bytes == 3 * MIB + 1024
    assert (recording.clock is None) == (name == "2.1")
    assert recording.stacks.frames(int(recording.allocations.stack[0])) == [("f", "a.py", 3)]
    # As PyTorch prints addresses, including those of the upper half, which it writes as negative numbers.
    begins = {segment["address"] % 2**64 for segment in snapshot["segments"]}
    regions = [details(recording, row)["region"] for row in (0, 1)]
    assert all(region is not None and region["index"] in begins for region in regions)


def test_the_list_of_segments_that_torch_1_wrote() -> None:
    allocator = CachingAllocator()
    allocator.alloc(3 * MIB)
    segments = allocator.snapshot()["segments"]
    for segment in segments:
        for block in segment["blocks"]:
            live = block["state"] != "inactive"
            block["history"] = [{"addr": block["address"], "real_size": 9, "frames": [{"name": "g", "line": 1}]}] * live
            del block["frames"], block["requested_size"], block["address"]
    [recording] = read(segments)
    assert recording.length == 1
    assert recording.allocations.size.tolist() == [3 * MIB]
    assert recording.stacks.frames(int(recording.allocations.stack[0]))[0][0] == "g"


def test_a_device_without_a_trace_is_a_moment() -> None:
    allocator = CachingAllocator()
    allocator.alloc(2 * MIB)
    [recording] = read({**allocator.snapshot(), "device_traces": [[], []]})
    assert (recording.axis, recording.length, peak(recording).bytes) == (Axis.TIME, 1, 2 * MIB)
    assert [caveat.code for caveat in recording.caveats] == ["no_trace"]


def test_odd_events_cost_a_caveat_each() -> None:
    allocator = CachingAllocator()
    allocator.alloc(512)
    allocator.trace += [
        {"action": "annotate_more", "addr": 5, "size": 0, "stream": 0, "time_us": 1},
        {"action": "alloc", "size": 512, "stream": 0, "time_us": 2},
        {"action": "free_completed", "addr": 77, "size": -5, "stream": 0, "time_us": 3},
        {"action": "alloc", "addr": 1 << 70, "size": 8, "stream": 0, "time_us": 4},
        {},
    ]
    [recording] = read(allocator.snapshot())
    codes = {caveat.code for caveat in recording.caveats}
    assert {"unknown_action", "no_address", "time_backwards", "older_than_trace"} <= codes
    assert len(usage(recording).live) == len(allocator.trace)


@pytest.mark.parametrize("data", [b"nothing", b"\x80\x04K\x01.", b"{}", b'{"segments": 5}', b"[1, 2]", b"[]"])
def test_what_is_no_snapshot_is_refused_or_empty(data: bytes) -> None:
    [part] = open_file(data, "/logs/x.pickle", host="x")
    try:
        assert part.read() == []
    except InputError as error:
        assert "/logs/x.pickle" in str(error)


@settings(max_examples=80)
@given(doings=doings)
def test_free_memory_is_what_the_segments_hold_beyond_their_blocks(doings: list[tuple[str, int]]) -> None:
    allocator = CachingAllocator(limit=256 * MIB)
    act(allocator, doings)
    if not allocator.trace:
        return
    snapshot = allocator.snapshot()
    [recording] = read(snapshot)
    last = recording.length - 1
    free = sorted(b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "inactive")
    assert sorted(holes(recording, last).size.tolist()) == free
    pieces = fragmentation(recording)
    assert pieces.largest_free[last] == max(free, default=0)
    assert recording.reserved is not None
    # At every event, including segments that were allocated and freed in between.
    assert (pieces.largest_free + pieces.fragmented + usage(recording).live).tolist() == recording.reserved.tolist()


def test_pool_and_stream_are_told_where_they_are_not_the_default() -> None:
    allocator = CachingAllocator()
    for stream in (0, 7):
        allocator.alloc(3 * MIB, stream=stream)
    snapshot = allocator.snapshot()
    rows = read(snapshot)[0].allocations
    assert [rows.op[row] for row in range(2)] == ["", "stream 0x7"]
    snapshot["segments"][0]["segment_pool_id"] = (0, 3)
    rows = read(snapshot)[0].allocations
    assert [rows.op[row] for row in range(2)] == ["private pool (0, 3)", "stream 0x7"]
    for event in snapshot["device_traces"][0]:
        event["pool_id"] = (1, 0)
    snapshot["segments"] = []
    rows = read(snapshot)[0].allocations
    assert [rows.op[row] for row in range(2)] == ["private pool (1, 0)", "private pool (1, 0), stream 0x7"]
