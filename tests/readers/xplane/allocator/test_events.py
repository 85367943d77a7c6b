"""Allocator events as columns, against protobuf's own parser, and the problems found in them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support.allocator_planes import FREES, REAL, Event, Log, events_of, same_number
from support.profiles import profiles

from tb_memplugin.native.xplane.stats import MISSING
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.xplane.allocator.events import NUMBERS, TEXTS, AllocatorEvents, read_allocator_events
from tb_memplugin.readers.xplane.planes import Plane

EPOCH_NS = 1_760_000_000 * 10**9  # a clock that starts in 1970, which exceeds 64 bits in picoseconds
COUNTS = {
    "tracelens_mi300_conv_minimal_08": 230,
    "tracelens_te_fused_attn": 59,
    "xprof_demo_gpu_multi_worker": 2493,
    "xprof_tpu_inference_2_old": 906,
}


def events(plane: XPlane) -> AllocatorEvents:
    found = read_allocator_events(Plane(memoryview(plane.SerializeToString())))
    assert found is not None
    return found


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
def test_every_column_of_every_event(path: Path) -> None:
    (plane,) = (plane for plane in XSpace.FromString(path.read_bytes()).planes if plane.name == b"/host:CPU")
    found = events(plane)
    expected = [event for log in events_of(path).values() for event in log]
    assert len(found) == len(expected) == COUNTS[path.parents[3].name]
    assert found.time_ps.tolist() == sorted(event.time_ps for event in expected)
    assert not found.impossible.any() and not found.unknown.any() and not found.out_of_order.any()
    # No two events have the same time, so the time identifies the event.
    at = {event.time_ps: event for event in expected}
    assert len(at) == len(expected)
    for row, time in enumerate(found.time_ps.tolist()):
        check_row(found, row, at[time])


def check_row(found: AllocatorEvents, row: int, event: Event) -> None:
    stats = event.stats
    assert found.frees[row] == event.free
    for name in NUMBERS:
        assert found.numbers[name][row] == stats.get(name, MISSING), name
    for name in TEXTS:
        assert found.texts[name][row] == stats.get(name, ""), name
    assert same_number(found.fragmentation[row], stats.get("fragmentation", math.nan))


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_a_plane_without_such_events_has_none(path: Path) -> None:
    for plane in XSpace.FromString(path.read_bytes()).planes:
        ids = {key for key, event in plane.event_metadata.items() if event.name.decode() in FREES}
        some = any(event.metadata_id in ids for line in plane.lines for event in line.events)
        assert (read_allocator_events(Plane(memoryview(plane.SerializeToString()))) is not None) == some


@pytest.mark.parametrize(
    "began", [0, 5, EPOCH_NS, 2**63 // 1000 - 150], ids=["0", "5", "since 1970", "at the overflow"]
)
def test_events_of_all_threads_are_in_order_of_absolute_time(began: int) -> None:
    """Check the order: by the offset in their lines, the events would be in the order 1, 0, 3, 2."""
    log = Log().line(timestamp_ns=began + 200).add(False, 1000, addr=1).add(True, 3000, addr=3)
    log.line(timestamp_ns=began).add(False, 2000, addr=0).add(False, 202_000, addr=2)
    found = events(log.plane)
    assert found.numbers["addr"].tolist() == [0, 1, 2, 3]
    assert found.time_ps.tolist() == [2000, 201_000, 202_000, 203_000]
    assert found.line.tolist() == [1, 0, 1, 0]
    assert found.file_row.tolist() == [2, 0, 3, 1]
    assert found.frees.tolist() == [False, False, False, True]
    assert not found.out_of_order.any()


def test_events_of_one_instant_stay_in_file_order() -> None:
    """Use more events than an unstable sort would keep in order by chance."""
    log = Log()
    for number in range(1000):
        log.add(False, number % 2, addr=number)
    assert events(log.plane).numbers["addr"].tolist() == [*range(0, 1000, 2), *range(1, 1000, 2)]


def test_time_that_goes_backwards_is_sorted_and_told() -> None:
    log = Log().add(False, 30, addr=3).add(False, 10, addr=1).add(False, 20, addr=2).line().add(False, 0, addr=0)
    found = events(log.plane)
    assert found.numbers["addr"].tolist() == [0, 1, 2, 3]
    assert found.out_of_order.tolist() == [False, True, False, False]


def test_one_text_is_spelt_out_or_referred_to() -> None:
    log = Log().add(False, 0, allocator_name="GPU_0_bfc").add(False, 1, allocator_name="@GPU_0_bfc")
    log.add(False, 2, allocator_name="").add(False, 3)
    names = events(log.plane).texts["allocator_name"]
    assert [names[row] for row in range(4)] == ["GPU_0_bfc", "GPU_0_bfc", "", ""]
    assert names.codes[2:].tolist() == [-1, -1]


def test_a_reference_to_nothing_is_empty() -> None:
    log = Log().add(False, 0, tf_op="@matmul")
    log.plane.lines[0].events[0].stats[0].ref_value = 2**63 + 5
    assert events(log.plane).texts["tf_op"][0] == ""


def test_other_spellings() -> None:
    found = events(Log().add(False, 0, device_ordinal=3, address=7, tensor_shapes="[2]").plane)
    assert found.numbers["index_on_host"].tolist() == [3]
    assert found.numbers["addr"].tolist() == [7]
    assert found.texts["shape"][0] == "[2]"


@pytest.mark.parametrize(
    ("written", "read_as"),
    [(12.0, 12), (math.nan, MISSING), (math.inf, MISSING), ("12", MISSING), (0, 0), (MAX_BYTES, MAX_BYTES)],
)
def test_a_number_in_another_form(written: object, read_as: int) -> None:
    found = events(Log().add(False, 0, requested_bytes=written).plane)
    assert found.numbers["requested_bytes"].tolist() == [read_as]
    assert not found.impossible.any()


@pytest.mark.parametrize("impossible", [-1, -(2**62), MAX_BYTES + 1, 2**62, -5.0])
def test_impossible_bytes_are_left_out_and_told(impossible: float) -> None:
    found = events(Log().add(False, 0, requested_bytes=impossible, bytes_allocated=5).add(False, 1, addr=7).plane)
    assert found.numbers["requested_bytes"].tolist() == [MISSING, MISSING]
    assert found.numbers["bytes_allocated"].tolist() == [5, MISSING]
    assert found.numbers["addr"].tolist() == [MISSING, 7]
    assert found.impossible.tolist() == [True, False]


def test_addresses_are_below_2_to_the_62nd_or_none() -> None:
    log = Log()
    for address in (0, 2**62 - 1, 2**62, -1):
        log.add(False, 0, addr=address)
    assert events(log.plane).numbers["addr"].tolist() == [0, 2**62 - 1, MISSING, MISSING]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [(0, 0.0), (1, 1.0), (0.25, 0.25), (math.nan, math.nan), ("NaN", math.nan), (-0.5, math.nan), (7, math.nan)],
)
def test_fragmentation_is_a_fraction_or_nothing(written: object, read_as: float) -> None:
    assert same_number(events(Log().add(False, 0, fragmentation=written).plane).fragmentation[0], read_as)


def test_unknown_stats_are_told_but_not_the_tracer_s_own() -> None:
    log = Log().add(False, 0, addr=1, new_stat=5).add(False, 1, addr=1, id=7, _pt=3, _p=4).add(False, 2, other="x")
    found = events(log.plane)
    assert found.unknown.tolist() == [True, False, True]
    assert found.numbers["addr"].tolist() == [1, 1, MISSING]


def test_an_event_that_tells_nothing_is_an_event() -> None:
    found = events(Log().add(True, 4).plane)
    assert len(found) == 1
    assert [found.numbers[name].tolist() for name in NUMBERS] == [[MISSING]] * len(NUMBERS)
    assert [found.texts[name][0] for name in TEXTS] == [""] * len(TEXTS)
    assert np.isnan(found.fragmentation).all()
    assert found.time_ps.tolist() == [4]
