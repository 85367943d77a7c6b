"""The replay, against an allocator that tracks every block, for every action and snapshot version."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.caching_allocator import MIB, CachingAllocator, Pool

from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.analysis.usage.steps import steps
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.readers import open_file

# The fields that each version added: a snapshot of an older version lacks them.
SINCE = {
    "time_us": 2.02,
    "external_annotations": 2.05,
    "compile_context": 2.08,
    "user_metadata": 2.10,
    "pool_id": 2.12,
}
ACTIONS_SINCE = {"annotate": 2.14}
AGES = [2.01, 2.02, 2.05, 2.08, 2.10, 2.12, 2.14, 2.15]
SKIPPED = [(), ("free_requested",), ("segment_alloc", "segment_free", "segment_map", "segment_unmap"), ("snapshot",)]

sizes = st.sampled_from([1, 512, 513, 700_000, MIB, MIB + 1, 3 * MIB, 9 * MIB, 11 * MIB, 19 * MIB, 30 * MIB, 70 * MIB])
WHAT = ["alloc"] * 4 + ["free"] * 3 + ["late", "complete", "empty", "snapshot", "annotate"]
doings = st.lists(st.tuples(st.sampled_from(WHAT), sizes), min_size=1, max_size=80)
POOLS: tuple[Pool, ...] = ((0, 0), (0, 3), (1, 0))


def acted(doings: list[tuple[str, int]], expandable: bool) -> CachingAllocator:
    allocator = CachingAllocator(limit=400 * MIB, expandable=expandable)
    live: list[int] = []
    pending: list[int] = []
    for number, (doing, size) in enumerate(doings):
        if doing == "alloc":
            frames = [{"name": "f", "filename": "train.py", "line": number}]
            context, pool = f"Torch-Compiled Region: {number % 3}/0", POOLS[number % 3]
            made = allocator.alloc(size, frames, number % 2, pool, compile_context=context, user_metadata="")
            live += [made] if made is not None else []
        elif doing == "free" and live:
            allocator.free(live.pop(number % len(live)))
        elif doing == "late" and live:  # record_stream: another stream still uses the block
            pending.append(live.pop(number % len(live)))
            allocator.request_free(pending[-1])
        elif doing == "complete" and pending:
            allocator.complete_free(pending.pop(0))
        elif doing == "annotate" and live:
            allocator.annotate(live[number % len(live)], f"mark {number}")
        elif doing == "empty":
            allocator.empty_cache()
        elif doing == "snapshot":
            allocator.take()
    return allocator


def aged(snapshot: dict[str, Any], age: float, skipped: tuple[str, ...]) -> tuple[dict[str, Any], list[int]]:
    """Return (the snapshot in the format of that version, the events of the trace that it kept)."""
    trace = snapshot["device_traces"][0]
    unknown = {*skipped, *(action for action, since in ACTIONS_SINCE.items() if since > age)}
    kept = [number for number, event in enumerate(trace) if event["action"] not in unknown]
    gone = {key for key, since in SINCE.items() if since > age}
    events = [{key: value for key, value in trace[number].items() if key not in gone} for number in kept]
    return {**{k: v for k, v in snapshot.items() if k not in gone}, "device_traces": [events]}, kept


def read(snapshot: Any) -> Recording:
    [part] = open_file(pickle.dumps(snapshot), "snapshot.pickle", host="snapshot")
    [recording] = part.read()
    return recording


def live_at(recording: Recording, position: int) -> Counter[tuple[int, int]]:
    rows = recording.allocations
    here = (rows.start <= position) & (position < rows.end)
    return Counter(zip(rows.id[here].tolist(), rows.size[here].tolist(), strict=True))


@settings(max_examples=250)
@given(doings=doings, expandable=st.booleans(), age=st.sampled_from(AGES), skipped=st.sampled_from(SKIPPED[:2]))
def test_blocks_are_those_of_the_allocator_at_each_snapshot_and_at_the_end(
    doings: list[tuple[str, int]], expandable: bool, age: float, skipped: tuple[str, ...]
) -> None:
    allocator = acted(doings, expandable)
    snapshot, kept = aged(allocator.snapshot(external_annotations=[]), age, skipped)
    if not kept:
        return
    recording = read(snapshot)
    rows = recording.allocations
    made = {position: allocator.truth[number] for position, number in enumerate(kept) if number in allocator.truth}
    assert dict(zip(rows.start.tolist(), rows.size.tolist(), strict=True)) == made
    assert live_at(recording, recording.length - 1) == allocator.in_use()
    for position, number in enumerate(kept):
        if number in allocator.known:
            assert live_at(recording, position) == allocator.known[number]
    assert not {caveat.code for caveat in recording.caveats} - {"no_frees", "no_time"}
    assert (recording.clock is None) == (age < 2.02)


@settings(max_examples=100)
@given(doings=doings, expandable=st.booleans(), skipped=st.sampled_from(SKIPPED[2:]))
def test_whatever_actions_are_left_out_the_end_is_right(
    doings: list[tuple[str, int]], expandable: bool, skipped: tuple[str, ...]
) -> None:
    allocator = acted(doings, expandable)
    snapshot, kept = aged(allocator.snapshot(), 2.15, skipped)
    if kept:
        recording = read(snapshot)
        assert live_at(recording, recording.length - 1) == allocator.in_use()


@settings(max_examples=100)
@given(doings=doings, expandable=st.booleans())
def test_reserved_bytes_are_those_of_the_segments_and_hold_the_blocks(
    doings: list[tuple[str, int]], expandable: bool
) -> None:
    allocator = acted(doings, expandable)
    if not allocator.trace:
        return
    reserved = read(allocator.snapshot()).reserved
    assert reserved is not None
    given, expected = 0, []
    for event in allocator.trace:
        sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
        given += sign.get(event["action"], 0) * event["size"]
        expected.append(given)
    assert reserved.tolist() == expected
    assert (usage(read(allocator.snapshot())).live <= reserved).all()


def test_a_tensor_tells_its_pool_its_stream_what_was_compiled_and_what_the_user_says() -> None:
    allocator = CachingAllocator()
    first = allocator.alloc(3 * MIB, None, 9, (0, 2), compile_context="Torch-Compiled Region: 1/0", user_metadata="kv")
    assert first is not None
    allocator.annotate(first, "cache of layer 3")
    allocator.free(first)
    again = allocator.alloc(3 * MIB, None, 9, (0, 2), compile_context="N/A", user_metadata="")
    assert again == first
    allocator.alloc(2 * MIB, None, 9, (0, 2), internal_metadata="mallocWithAddress")
    rows = read(allocator.snapshot()).allocations
    assert [rows.op[row] for row in range(3)] == ["private pool (0, 2), stream 0x9"] * 3
    assert [rows.op_name[row] for row in range(3)] == [
        "cache of layer 3, kv, Torch-Compiled Region: 1/0", "", "mallocWithAddress",
    ]  # fmt: skip


def test_what_is_named_that_is_older_than_the_trace_is_named() -> None:
    allocator = CachingAllocator()
    old = allocator.alloc(5 * MIB)
    assert old is not None
    allocator.trace.clear()
    allocator.annotate(old, "weights")
    rows = read(allocator.snapshot()).allocations
    assert (rows.start[0], rows.op_name[0]) == (-1, "weights")


@pytest.mark.parametrize("nested", [True, False])
def test_pinned_memory_of_the_host_is_a_recording_of_its_own(nested: bool) -> None:
    def event(action: str, address: int, size: int, time: int) -> dict[str, Any]:
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": []}

    kept, gone = 0x5000_0000, 0x6000_0000
    trace = [
        event("segment_alloc", kept, 4 * MIB, 1),
        event("alloc", kept, 3 * MIB, 2),
        event("segment_alloc", gone, MIB, 3),
        event("alloc", gone, 600_000, 4),
        event("free_requested", gone, 600_000, 5),
        event("free_completed", gone, 600_000, 6),
    ]
    segments = [
        {"address": kept, "size": 4 * MIB, "allocated": True, "active": True, "frames": []},
        {"address": gone, "size": MIB, "allocated": False, "active": False, "frames": []},
    ]
    device = CachingAllocator()
    device.alloc(512)
    snapshot = device.snapshot(host_segments=segments, host_traces=[trace] if nested else trace)
    [part] = open_file(pickle.dumps(snapshot), "x.pickle", host="x")
    cuda, pinned = part.read()
    assert (cuda.memory, pinned.memory) == ("cuda:0", "pinned host")
    assert usage(pinned).live.tolist() == [0, 4 * MIB, 4 * MIB, 5 * MIB, 5 * MIB, 4 * MIB]
    assert pinned.allocations.requested.tolist() == [3 * MIB, 600_000]
    assert pinned.reserved is not None
    assert pinned.reserved.tolist() == [4 * MIB] * 2 + [5 * MIB] * 4
    assert np.array_equal(np.sort(pinned.regions.size), [MIB, 4 * MIB])


def test_small_pinned_memory_is_as_large_as_its_events_say() -> None:
    """Check host memory: that allocator rounds to powers of two and logs the result, not to the devices' 512 bytes."""
    where, small = {"addr": 0x5000_0000, "size": 64, "stream": 0}, {"addr": 0x6000_0000, "size": 16, "stream": 0}
    trace = [
        {"action": "segment_alloc", **where, "time_us": 1},
        {"action": "alloc", **where, "time_us": 2},
        {"action": "free_requested", **small, "time_us": 3},
        {"action": "free_completed", **small, "time_us": 4},
    ]
    segments = [{"address": 0x5000_0000, "size": 64, "allocated": True, "active": True, "frames": []}]
    [part] = open_file(pickle.dumps({"segments": [], "host_segments": segments, "host_traces": trace}), "x.pickle")
    [pinned] = part.read()
    assert usage(pinned).live.tolist() == [16, 80, 80, 64]
    assert [caveat.code for caveat in pinned.caveats] == ["older_than_trace"]


def test_what_pytorch_makes_of_its_profiler_has_categories_and_no_segments() -> None:
    """Use torch.cuda._memory_viz._profile_to_snapshot: one segment spans all addresses, and there are no timestamps."""
    low, high = 0x1000, 0x7F00_0000_0000
    names = "<built-in function linear>", "train.py(7): step"
    stack = [{"filename": "none", "line": 0, "name": name} for name in names]

    def event(action: str, address: int, category: str) -> dict[str, Any]:
        return {"action": action, "addr": address, "size": 100, "stream": 0, "frames": stack, "category": category}

    trace = [
        event("alloc", high, "gradient"),
        event("free_requested", high, "gradient"),
        event("free_completed", high, "gradient"),
    ]
    kept = {"size": 100, "requested_size": 100, "state": "active_allocated", "frames": []}
    hole = {"size": high - low, "state": "inactive"}
    segment = {"device": 0, "address": low, "total_size": high - low + 100, "stream": 0, "blocks": [kept, hole]}
    recording = read({"segments": [segment], "device_traces": [trace]})
    assert usage(recording).live.tolist() == [200, 200, 100]
    assert (recording.reserved, len(recording.regions), recording.clock) == (None, 0, None)
    assert recording.allocations.role.tolist() == [Role.GRADIENT, Role.UNKNOWN]
    assert recording.free_stack is None  # the frees have their allocations' stacks
    leaf = int(recording.allocations.stack[0])
    assert recording.stacks.frames(leaf) == [("<built-in function linear>", "", 0), ("step", "train.py", 7)]
    assert {caveat.code for caveat in recording.caveats} == {"older_than_trace", "no_time"}
    assert steps(recording).message.startswith("The events have no timestamps")


def test_a_tree_by_marks_speaks_of_no_jitted_function() -> None:
    allocator = CachingAllocator()
    allocator.alloc(3 * MIB, [{"filename": "train.py", "line": 7, "name": "step"}], user_metadata="kv")
    allocator.alloc(2 * MIB)
    text = "\n".join(lines(explain(read(allocator.snapshot()))))
    assert "By annotation:" in text and "kv: step (train.py:7)" in text and "not marked" in text
    assert "jitted" not in text
