"""Unusual or broken allocator events: each is kept, and each problem is reported with a count."""

from __future__ import annotations

from typing import Any

import pytest
from support.allocator_planes import Log, unexplained

from tb_memplugin.errors import InputError
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.xplane.allocator.recordings import UNNAMED, read_allocators
from tb_memplugin.readers.xplane.planes import Plane


def counts(recording: Recording) -> dict[str, int]:
    """Return the count of each caveat that has one."""
    told = {caveat.code: caveat.text.partition(" of ")[0].replace(",", "") for caveat in recording.caveats}
    return {code: int(number) for code, number in told.items() if number.isdigit()}


GOOD = {"allocator_name": "a", "fragmentation": 0.0, "bytes_available": 10, "bytes_reserved": 0}


def made(*events: tuple[bool, dict[str, Any]]) -> Recording:
    """Return events of one second each, with the fields of GOOD unless overridden; None removes a field."""
    log = Log()
    for second, (free, stats) in enumerate(events):
        said = {name: value for name, value in {**GOOD, **stats}.items() if value is not None}
        log.add(free, second * 10**12, **said)
    return log.only()


ALLOCATION = {"addr": 16, "allocation_bytes": 8, "bytes_allocated": 8}
FREE = {"addr": 16, "allocation_bytes": 8, "bytes_allocated": 0}


def test_a_pair_of_good_events_has_no_caveat() -> None:
    recording = made((False, ALLOCATION), (True, FREE))
    assert recording.caveats == ()
    assert (recording.allocations.start.tolist(), recording.allocations.end.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("change", "caveat"),
    [
        ({"addr": None}, "no_address"),
        ({"addr": -5}, "no_address"),
        ({"allocator_name": None}, "unnamed"),
        ({"allocator_name": ""}, "unnamed"),
        ({"allocator_name": None, "index_on_host": -4}, "unnamed"),
        ({"allocation_bytes": -8}, "impossible_bytes"),
        ({"bytes_reserved": -1}, "impossible_bytes"),
        ({"bytes_allocated": None}, "in_use_missing"),
        ({"bytes_allocated": 2**61}, "in_use_missing"),
        ({"fragmentation": float("nan")}, "fragmentation_missing"),
        ({"fragmentation": "NaN"}, "fragmentation_missing"),
        ({"fragmentation": None}, "fragmentation_missing"),
        ({"what_is_this": 1}, "unknown_stats"),
        ({"data_type": 999}, "unknown_dtype"),
    ],
)
def test_an_odd_figure_is_a_caveat_with_a_count(change: dict[str, Any], caveat: str) -> None:
    recording = made((False, {**ALLOCATION, **change}), (True, {**FREE, **change}))
    assert counts(recording)[caveat] == 2
    assert "2 of 2 events" in next(c.text for c in recording.caveats if c.code == caveat)


def test_time_that_goes_backwards_is_a_caveat_with_a_count() -> None:
    log = Log()
    for time, address, in_use in ((30, 3, 24), (10, 1, 8), (20, 2, 16)):
        log.add(False, time, **{**GOOD, "addr": address, "allocation_bytes": 8, "bytes_allocated": in_use})
    recording = log.only()
    assert counts(recording) == {"out_of_order": 1}
    assert unexplained(recording) == [0, 0, 0]
    assert recording.allocations.start.tolist() == [0, 1, 2]


def test_an_address_of_zero_and_a_core_of_zero_are_good() -> None:
    recording = made(
        (False, {**ALLOCATION, "addr": 0, "allocator_name": None, "index_on_host": 0}),
        (True, {**FREE, "addr": 0, "allocator_name": None, "index_on_host": 0}),
    )
    assert recording.memory == "TPU core 0"
    assert recording.caveats == ()
    assert recording.allocations.offset.tolist() == [0]


def test_without_addresses_nothing_is_paired_and_the_sums_hold() -> None:
    recording = made((False, {**ALLOCATION, "addr": None}), (True, {**FREE, "addr": None}))
    assert recording.allocations.end.tolist() == [2, 1]
    assert recording.allocations.offset.tolist() == [-1, -1]
    assert set(unexplained(recording)) == {-8}
    assert {str(c.code): c.bytes for c in recording.caveats}["freed_more"] == 8


def test_a_free_before_its_allocation_is_of_something_else() -> None:
    recording = made((True, {**FREE, "bytes_allocated": 100}), (False, {**ALLOCATION, "bytes_allocated": 108}))
    rows = recording.allocations
    assert sorted(zip(rows.start.tolist(), rows.end.tolist(), rows.size.tolist(), strict=True)) == [
        (-1, 0, 8), (-1, 2, 100), (1, 2, 8),
    ]  # fmt: skip
    assert unexplained(recording) == [0, 0]
    assert {c.code: c.bytes for c in recording.caveats} == {"live_before": 108}
    assert "1 of 2 events" in recording.caveats[0].text


def test_two_allocations_at_one_address() -> None:
    """Expect unexplained bytes: the first block cannot still be live, though the allocator counts it."""
    recording = made(
        (False, ALLOCATION), (False, {**ALLOCATION, "bytes_allocated": 16}), (True, {**FREE, "bytes_allocated": 8})
    )
    assert recording.allocations.end.tolist() == [1, 2]
    assert counts(recording) == {"address_taken": 1}
    assert unexplained(recording) == [0, 8, 8]


def test_a_gap_in_the_log_is_told() -> None:
    recording = made((False, ALLOCATION), (False, {**ALLOCATION, "addr": 32, "bytes_allocated": 99}))
    assert counts(recording) == {"in_use_differs": 1}
    assert unexplained(recording) == [0, 83]


def test_in_use_is_added_up_where_it_is_not_told() -> None:
    def events(*told: int | None) -> Recording:
        return made(*((False, {**ALLOCATION, "addr": number, "bytes_allocated": n}) for number, n in enumerate(told)))

    for told, expected in (
        ((None, None, None), [8, 16, 24]),
        ((None, 100, None), [92, 100, 108]),
        ((50, None, None), [50, 58, 66]),
    ):
        recording = events(*told)
        assert recording.reported is not None
        assert recording.reported.in_use.tolist() == expected
        assert counts(recording) == {"in_use_missing": told.count(None)}
        assert unexplained(recording) == [0, 0, 0]


def test_sizes_that_are_not_told() -> None:
    """Take a free's size from its allocation, else from the change in use; if neither is known, add a caveat."""
    recording = made(
        (False, {"addr": 1, "allocation_bytes": 8, "bytes_allocated": 8}),
        (False, {"addr": 2, "bytes_allocated": 13}),
        (True, {"addr": 1, "bytes_allocated": 5}),
        (True, {"addr": 2, "bytes_allocated": 0}),
    )
    assert recording.allocations.size.tolist() == [8, 5]
    assert recording.caveats == ()
    silent = made((False, {"addr": 1}), (True, {"addr": 1}))
    assert silent.allocations.size.tolist() == [0]
    assert counts(silent) == {"in_use_missing": 2, "size_missing": 2}


def test_what_is_asked_for_is_at_most_what_is_given() -> None:
    rows = made(
        (False, {**ALLOCATION, "requested_bytes": 5}), (False, {"addr": 2, "requested_bytes": 6, "bytes_allocated": 14})
    )
    assert (rows.allocations.requested.tolist(), rows.allocations.size.tolist()) == ([5, 6], [8, 6])
    assert made((False, {**ALLOCATION, "requested_bytes": 50})).allocations.requested.tolist() == [8]


def test_a_capacity_needs_to_know_what_is_free() -> None:
    assert made((False, ALLOCATION)).capacity == 18
    assert made((False, {**ALLOCATION, "bytes_available": None})).capacity is None


def test_the_lifetime_peak_need_not_be_told_last() -> None:
    later = {"addr": 32, "allocation_bytes": 8, "bytes_allocated": 16}
    recording = made((False, {**ALLOCATION, "peak_bytes_in_use": 90}), (False, {**later, "peak_bytes_in_use": 20}))
    assert recording.reported_peak == 90


@pytest.mark.parametrize("began", [0, 1_760_000_000 * 10**9, 2**63 // 1000 - 150])
def test_a_clock_that_counts_from_1970(began: int) -> None:
    """Use times that exceed 64 bits in picoseconds, and that overflow within some profiles."""
    log = Log().line(timestamp_ns=began).line(timestamp_ns=began + 100)
    log.add(False, 60_000, allocator_name="a", addr=1, allocation_bytes=8, bytes_allocated=8)
    log.plane.event_metadata[2].name = b"PjitFunction(f)"
    log.plane.lines[1].events.add(metadata_id=2, offset_ps=40_000, duration_ps=30_000)
    recording = log.only()
    assert recording.clock is not None and recording.spans is not None
    assert recording.clock.tolist() == [160]
    assert (recording.spans.start_ns.tolist(), recording.spans.end_ns.tolist()) == ([140], [170])
    assert recording.allocations.name[0] == "PjitFunction(f)"


def test_what_a_program_allocates_is_named_for_its_function_and_what_lies_beside_it_for_its_frame() -> None:
    log = Log().line()
    for time, addr in ((5_000, 1), (15_000, 2), (25_000, 3)):
        log.add(False, time, allocator_name="a", addr=addr, allocation_bytes=8, bytes_allocated=8 * addr)
    log.plane.event_metadata[2].name = b"PjitFunction(f)"
    log.plane.event_metadata[3].name = PROGRAM_FRAMES[0].encode()
    log.plane.event_metadata[4].name = b"DevicePut"
    for kind, start, duration in ((2, 0, 20_000), (3, 4_000, 2_000), (4, 14_000, 2_000), (3, 24_000, 2_000)):
        log.plane.lines[0].events.add(metadata_id=kind, offset_ps=start, duration_ps=duration)
    rows = log.only().allocations
    assert [rows.name[row] for row in range(3)] == ["f", "DevicePut", PROGRAM_FRAMES[0]]


def test_a_plane_cut_short_is_one_clear_error() -> None:
    log = Log()
    for number in range(3):
        log.add(False, number, allocator_name="a", addr=number, bytes_allocated=1)
    whole = log.plane.SerializeToString()
    for length in range(len(whole)):
        try:
            recordings = read_allocators(Plane(memoryview(whole[:length])), run="", host="", source="/x.xplane.pb")
        except InputError as error:
            assert error.where == "/x.xplane.pb"
        else:  # cut between two parts of the plane
            assert sum(recording.length for recording in recordings) in (0, 3)


def test_names_of_memories() -> None:
    log = Log()
    for name in ("GPU_10_bfc", "GPU_2_bfc", "@GPU_2_bfc", "gpu_host_bfc"):
        log.add(False, 0, allocator_name=name, index_on_host=7)
    for core in (10, 2, 0):
        log.add(False, 0, index_on_host=core)
    log.add(False, 0)
    recordings = log.read()
    assert [(recording.memory, recording.length) for recording in recordings] == [
        ("GPU_2_bfc", 2), ("GPU_10_bfc", 1), ("TPU core 0", 1), ("TPU core 2", 1), ("TPU core 10", 1),
        ("gpu_host_bfc", 1), (UNNAMED, 1),
    ]  # fmt: skip
    assert len({recording.id for recording in recordings}) == len(recordings)


def test_a_name_with_digits_that_are_no_numbers() -> None:
    log = Log()
    for name in ("GPU_\u00b2", "GPU_\u0663", "GPU_2"):
        log.add(False, 0, allocator_name=name)
    assert [recording.memory for recording in log.read()] == ["GPU_2", "GPU_\u00b2", "GPU_\u0663"]


def test_a_name_that_is_not_utf_8() -> None:
    log = Log().add(False, 0, allocator_name="a", tf_op="b", **{"addr": 1, "bytes_allocated": 1})
    for stat in log.plane.lines[0].events[0].stats[:2]:
        stat.str_value = b"\xff"
    assert (log.only().memory, log.only().allocations.name[0]) == ("\ufffd", "\ufffd")
