"""Live bytes over the axis, live buffers and summary figures, on numbers small enough to add up by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import Row, recording

from tb_memplugin.analysis.fragmentation import overlap
from tb_memplugin.analysis.usage.live_bytes import Usage, buckets, peak, reserved_bytes, usage
from tb_memplugin.analysis.usage.live_set import bytes_by_role, figures, live_rows
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.readers.common.table_builder import no_regions

ROWS = st.lists(
    st.builds(
        lambda size, start, life, padding: Row(size, start, start + life, requested=max(size - padding, 0)),
        st.integers(0, 2**50),
        st.integers(-1, 9),
        st.integers(0, 11),
        st.integers(0, 100),
    ),
    max_size=12,
)


@given(ROWS)
def test_usage_is_the_sum_of_the_live_rows_at_every_position(rows: list[Row]) -> None:
    curve = usage(recording(rows, length=10))
    for p in range(10):
        live = [row for row in rows if row.start <= p < row.end]
        assert curve.live[p] == sum(row.size for row in live)
        assert curve.requested[p] == sum(row.requested or 0 for row in live if row.size)


def test_peak_is_the_first_of_equals() -> None:
    assert peak(recording([Row(8, 1, 3), Row(8, 5, 7)], length=8)) == (8, 1)


def test_nothing_has_a_peak_of_nothing() -> None:
    assert peak(recording([], length=0)) == (0, 0)
    assert peak(recording([], length=5)) == (0, 0)


def test_a_row_without_charge_adds_nothing() -> None:
    assert peak(recording([Row(8, 0, 4), Row(8, 1, 3, charge=0, canonical=0)], length=4)).bytes == 8


def test_thread_locals_are_not_reserved() -> None:
    kinds = [(100, RegionKind.TEMPORARY), (7, RegionKind.THREAD_LOCAL), (50, RegionKind.PARAMETER)]
    assert reserved_bytes(recording([], 1, kinds)) == 150


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 70), st.data())
def test_no_extreme_is_lost_in_a_bucket(live: list[int], count: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(live) - 1))
    end = data.draw(st.integers(start + 1, len(live)))
    curve = Usage(np.array(live), np.array(live) // 2)
    low = buckets(curve, start, end, count)
    assert 1 <= len(low.position) <= count
    for i, first in enumerate(low.position):
        last = low.position[i + 1] if i + 1 < len(low.position) else end
        assert low.live_max[i] == max(live[first:last])
        assert low.live_min[i] == min(live[first:last])
        assert low.unpadded_max[i] == max(live[first:last]) // 2


def test_buckets_of_an_empty_window() -> None:
    assert len(buckets(usage(recording([], 4)), 4, 4, 10).position) == 0


def test_the_live_set_is_charged_rows_largest_first() -> None:
    rows = [Row(8, 0, 4), Row(16, 2, 3), Row(32, 3, 4), Row(64, 0, 4, charge=0)]
    assert live_rows(recording(rows, 4), 2).tolist() == [1, 0]


def test_bytes_by_role_leaves_out_what_is_not_there() -> None:
    rows = [Row(8, 0, 4), Row(16, 0, 4, role=Role.PARAMETER), Row(32, 0, 1, role=Role.CONSTANT)]
    assert bytes_by_role(recording(rows, 4), 3) == {Role.PARAMETER: 16, Role.TEMPORARY: 8}


def test_sharing_finds_overlapping_bytes_of_the_same_region_only() -> None:
    rows = [
        Row(16, 0, 2, offset=0),
        Row(16, 2, 4, offset=8),
        Row(16, 1, 4, offset=16),
        Row(16, 0, 2, offset=0, canonical=0),
        Row(16, 0, 2, offset=0, region=1),
    ]
    found = overlap(recording(rows, 4, [(64, RegionKind.TEMPORARY)] * 2), 0)
    assert (found.row.tolist(), found.same_buffer.tolist()) == ([3, 1], [1, 0])


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("live_peak", 130),
        ("reserved", 178),
        ("arguments", 100),
        ("outputs", 100),
        ("temporaries", 64),
        ("constants", 14),
        ("padding", 6),
        ("fragmentation", 48),
        ("reported_peak", None),
    ],
)
def test_figures(key: str, expected: int | None) -> None:
    """Use a donated argument of 100 bytes, a constant of 14, and 16 of 64 temporary bytes live, 6 of them padding."""
    kinds = [
        (64, RegionKind.TEMPORARY),
        (100, RegionKind.PARAMETER | RegionKind.OUTPUT),
        (14, RegionKind.CONSTANT),
    ]
    rows = [
        Row(16, 1, 3, requested=10),
        Row(100, -1, 4, region=1, role=Role.PARAMETER),
        Row(14, -1, 4, region=2, role=Role.CONSTANT),
    ]
    assert {figure.key: figure.bytes for figure in figures(recording(rows, 4, kinds))}[key] == expected


def test_figures_of_a_recording_without_regions_have_no_temporaries() -> None:
    found = replace(recording([Row(8, 1, 3)], length=4), regions=no_regions())
    found = replace(found, allocations=replace(found.allocations, region=np.full(1, -1, dtype=np.int32)))
    sizes = {figure.key: figure.bytes for figure in figures(found)}
    assert (sizes["live_peak"], sizes["temporaries"], sizes["fragmentation"]) == (8, 0, 0)
