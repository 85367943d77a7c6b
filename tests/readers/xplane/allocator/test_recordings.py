"""Recordings of allocators, recomputed from raw events: real events and arbitrary valid ones."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.allocator_planes import REAL, Event, Log, events_of, recordings_of, unexplained

from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.common.rows import pair
from tb_memplugin.readers.xplane.allocator.lifetimes import BEFORE

each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
same_each_time = settings(derandomize=True)


Life = tuple[int, int, int, int, int]  # start, end, size, requested, address


def lifetimes(events: list[Event]) -> list[Life]:
    """Replay the events; frees of unknown blocks belong to memory from before the recording."""
    held: dict[int, int] = {}
    found: list[Life] = []
    for position, event in enumerate(events):
        stats, address = event.stats, event.stats["addr"]
        if not event.free:
            assert address not in held
            held[address] = position
        elif address in held:
            start = held.pop(address)
            born = events[start].stats
            found.append((start, position, born["allocation_bytes"], born["requested_bytes"], address))
        else:
            found.append((-1, position, stats["allocation_bytes"], stats["requested_bytes"], address))
    for address, start in held.items():
        born = events[start].stats
        found.append((start, len(events), born["allocation_bytes"], born["requested_bytes"], address))
    return sorted(found)


@each_profile
def test_lifetimes_are_those_of_a_replay(path: Path) -> None:
    raw, recordings = events_of(path), recordings_of(path)
    assert set(raw) == set(recordings)
    for memory, recording in recordings.items():
        rows, events = recording.allocations, raw[memory]
        assert recording.length == len(events)
        assert recording.clock is not None
        assert recording.clock.tolist() == [event.time_ps // 1000 for event in events]
        kept = [row for row in range(len(rows)) if rows.name[row] != BEFORE]
        base = int(recording.regions.index[0])
        columns = (rows.start, rows.end, rows.size, rows.requested, rows.offset + base)
        assert sorted(zip(*(column[kept].tolist() for column in columns), strict=True)) == lifetimes(events)


@each_profile
def test_rows_add_up_to_what_the_allocator_says_at_every_event(path: Path) -> None:
    raw = events_of(path)
    for memory, recording in recordings_of(path).items():
        events, rows = raw[memory], recording.allocations
        live = [0] * recording.length
        for start, end, size in zip(rows.start.tolist(), rows.end.tolist(), rows.charge.tolist(), strict=True):
            for position in range(max(start, 0), end):
                live[position] += size
        said = [event.stats["bytes_allocated"] for event in events]
        reserved = [event.stats["bytes_reserved"] for event in events]
        assert [a + b for a, b in zip(live, unexplained(recording), strict=True)] == said
        assert live == said, "the heap is explained to the byte, on GPU and on TPU"
        assert usage(recording).live.tolist() == [a + b for a, b in zip(said, reserved, strict=True)]


@each_profile
def test_each_step_of_in_use_is_one_event_s_bytes(path: Path) -> None:
    """Check that the log is complete and in order. On TPU, frees log no bytes."""
    for memory, events in events_of(path).items():
        assert len({event.time_ps for event in events}) == len(events)
        for before, event in pairwise(events):
            step = event.stats["bytes_allocated"] - before.stats["bytes_allocated"]
            if memory.startswith("TPU"):
                assert (step < 0) == event.free
            if "allocation_bytes" in event.stats:
                assert step == event.step


@each_profile
def test_what_was_live_before_is_one_figure(path: Path) -> None:
    """Compare the sum of earlier rows, and the caveat, with the first bytes in use less the first allocation."""
    raw = events_of(path)
    for memory, recording in recordings_of(path).items():
        first, rows = raw[memory][0], recording.allocations
        before = first.stats["bytes_allocated"] - first.step
        assert int(rows.charge[rows.start < 0].sum()) == before
        assert [rows.name[row] for row in range(len(rows))].count(BEFORE) <= 1
        assert {c.code: c.bytes for c in recording.caveats} == ({"live_before": before} if before else {})


@each_profile
def test_figures_of_the_whole(path: Path) -> None:
    raw = events_of(path)
    for memory, recording in recordings_of(path).items():
        stats = [event.stats for event in raw[memory]]
        assert recording.reported_peak == max(s["peak_bytes_in_use"] for s in stats)
        whole = {s["bytes_allocated"] + s["bytes_reserved"] + s["bytes_available"] for s in stats}
        assert recording.capacity == max(whole)
        assert recording.regions.size.tolist() == [
            max(s["addr"] + s.get("allocation_bytes", 0) for s in stats) - min(s["addr"] for s in stats)
        ]


def test_the_lifetime_peak_is_the_largest_that_was_told() -> None:
    path = next((path for path in REAL if path.parents[3].name == "xprof_demo_gpu_multi_worker"), None)
    if path is None:
        pytest.skip("the profiles beside the repository are not there")
    recordings = recordings_of(path)
    assert list(recordings) == ["GPU_1_bfc", "GPU_4_bfc", "GPU_6_bfc", "gpu_host_bfc"]
    assert recordings["GPU_4_bfc"].reported_peak == 6_208_853_760
    assert recordings["gpu_host_bfc"].reported_peak == 134_217_728


def plain_pairs(address: list[int], frees: list[bool], known: list[bool]) -> tuple[list[int], int]:
    held: dict[int, int] = {}
    partner, address_taken = [-1] * len(address), 0
    for now, (place, free, told) in enumerate(zip(address, frees, known, strict=True)):
        if told:
            before = held.pop(place, -1)
            if before >= 0:
                partner[before] = now
                address_taken += not free
            if free:
                partner[now] = before
            else:
                held[place] = now
    return partner, address_taken


@same_each_time
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from([True, True, True, False]))))
def test_pairs_are_those_of_a_replay(events: list[tuple[int, bool, bool]]) -> None:
    address, frees, known = ([event[i] for event in events] for i in range(3))
    found = pair(np.array(address, np.int64), np.array(frees, bool), np.array(known, bool))
    assert (found.partner.tolist(), found.address_taken) == plain_pairs(
        [int(a) for a in address], [bool(f) for f in frees], [bool(k) for k in known]
    )


@pytest.mark.parametrize("frees_each", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("stride", [1, 512, 2**40])
def test_pairs_of_many_live_allocations(frees_each: float, stride: int) -> None:
    """Thousands are live at once, so that the table of live allocations grows and its entries move."""
    random = np.random.default_rng(0)
    address = (random.integers(0, 8000, 40_000) * stride).astype(np.int64)
    frees, known = random.random(len(address)) < frees_each, random.random(len(address)) < 0.99
    found = pair(address, frees, known)
    partner, taken = plain_pairs(address.tolist(), frees.tolist(), known.tolist())
    assert found.partner.tolist() == partner
    assert found.address_taken == taken


@st.composite
def sound_logs(draw: st.DrawFn) -> tuple[Log, list[int]]:
    """Return allocations and frees of a correct allocator, some of memory from before, over several threads."""
    held: dict[int, int] = dict(enumerate(draw(st.lists(st.integers(1, 99), max_size=3))))
    in_use, fresh = sum(held.values()) + draw(st.sampled_from([0, 1000])), len(held)
    lines: list[list[tuple[bool, int, dict[str, Any]]]] = [[], [], []]
    said: list[int] = []
    for time in range(draw(st.integers(1, 25))):
        if held and draw(st.sampled_from([True, False])):
            address = draw(st.sampled_from(sorted(held)))
            size, free = held.pop(address), True
        else:
            size, free, address = draw(st.integers(1, 99)), False, fresh
            held[address], fresh = size, fresh + 1
        in_use += -size if free else size
        said.append(in_use)
        stats = {"addr": 1000 + address, "allocation_bytes": size, "bytes_allocated": in_use, "bytes_available": 1}
        lines[draw(st.integers(0, 2))].append((free, time * 1000, stats))
    log = Log()
    for number, events in enumerate(lines):
        log.line(timestamp_ns=50 + number)
        for free, time, stats in events:
            log.add(free, time + (2 - number) * 1000, allocator_name="a", fragmentation=0, **stats)
    return log, said


@same_each_time
@given(sound_logs())
def test_sound_logs_are_explained_without_a_caveat(case: tuple[Log, list[int]]) -> None:
    log, said = case
    recording = log.only()
    assert recording.reported is not None
    assert recording.reported.in_use.tolist() == said
    assert unexplained(recording) == [0] * len(said)
    assert {caveat.code for caveat in recording.caveats} <= {"live_before"}


odd = st.one_of(
    st.sampled_from(
        [0, 1, -1, 2**63 - 1, -(2**63), MAX_BYTES, MAX_BYTES + 1, 0.5, float("nan"), float("inf"), "", "x", "@x"]
    ),
    st.integers(-50, 50),
)
names = st.sampled_from(
    ["addr", "allocation_bytes", "requested_bytes", "bytes_allocated", "bytes_reserved", "bytes_available",
     "peak_bytes_in_use", "fragmentation", "allocator_name", "index_on_host", "data_type", "tf_op", "shape", "new"]
)  # fmt: skip
odd_event = st.tuples(st.booleans(), st.integers(-(10**6), 10**6), st.dictionaries(names, odd, max_size=9))


@same_each_time
@given(st.lists(odd_event, min_size=1, max_size=12))
def test_whatever_the_events_say_each_is_kept(events: list[tuple[bool, int, dict[str, Any]]]) -> None:
    """Check that every event starts or ends a row, every allocation starts one, and rows have possible addresses."""
    log = Log()
    for free, time, stats in events:
        log.add(free, time, **stats)
    recordings = log.read()
    assert sum(recording.length for recording in recordings) == len(events)
    assert len({recording.id for recording in recordings}) == len(recordings)
    allocations = 0
    for recording in recordings:
        rows, n = recording.allocations, recording.length
        begun = sorted(rows.start[rows.start >= 0].tolist())
        ended = rows.end[rows.end < n].tolist()
        assert len(set(begun)) == len(begun)
        assert set(begun) | set(ended) == set(range(n))
        assert (rows.start < rows.end).all() and (rows.size >= 0).all() and (rows.requested <= rows.size).all()
        assert (rows.requested >= 0).all() and (rows.offset >= -1).all()
        allocations += len(begun)
        assert {len(column) for column in (rows.name, rows.shape, rows.dtype, rows.op, rows.op_name)} == {len(rows)}
        assert recording.length == n
    assert allocations == sum(not free for free, _, _ in events)
