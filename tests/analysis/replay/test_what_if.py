"""The peak of a changed recording, against a plain Python sum at every position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import Row, recording

from tb_memplugin.analysis.replay.what_if import (
    RowLifetimes,
    new_memory,
    peak_after,
    remove_rows,
    replace_lifetimes,
    resize_rows,
    shrink_regions,
)
from tb_memplugin.analysis.usage.live_bytes import Peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind

LENGTH = 12


def column(*values: int) -> I64:
    return np.array(values, dtype=np.int64)


def added_up(rows: list[Row]) -> Peak:
    live = [sum(row.size for row in rows if row.start <= p < row.end) for p in range(LENGTH)]
    return Peak(max(live), live.index(max(live)))


spans = st.tuples(st.integers(0, LENGTH - 1), st.integers(1, LENGTH)).map(lambda s: (min(s), max(s) + (s[0] == s[1])))
rows_of = st.lists(st.builds(lambda size, span: Row(size, *span), st.integers(1, 50), spans), min_size=1, max_size=8)


@given(rows_of, st.lists(st.tuples(st.integers(-20, 20), spans), max_size=6))
def test_a_change_is_added_at_each_of_its_positions(
    rows: list[Row], changes: list[tuple[int, tuple[int, int]]]
) -> None:
    change = new_memory(
        column(*(span[0] for _, span in changes)),
        column(*(span[1] for _, span in changes)),
        column(*(size for size, _ in changes)),
    )
    assert peak_after(recording(rows, LENGTH), change) == added_up(
        [*rows, *(Row(size, *span) for size, span in changes)]
    )


@given(rows_of, st.data())
def test_without_rows_the_peak_is_that_of_the_others(rows: list[Row], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    whole = recording(rows, LENGTH)
    expected = added_up([row for i, row in enumerate(rows) if i not in gone] or [Row(0, 0, 1)])
    assert peak_after(whole, remove_rows(whole, column(*sorted(gone)))) == expected


@given(rows_of, st.data())
def test_rows_of_another_size(rows: list[Row], data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(0, 60)) for _ in rows]
    whole = recording(rows, LENGTH)
    expected = added_up([Row(size, row.start, row.end) for size, row in zip(sizes, rows, strict=True)])
    assert peak_after(whole, resize_rows(whole, np.arange(len(rows)), column(*sizes))) == expected


def test_the_new_peak_may_be_elsewhere() -> None:
    rows = [Row(100, 0, 3), Row(90, 5, 8)]
    whole = recording(rows, LENGTH)
    assert peak_after(whole, remove_rows(whole, column(0))) == Peak(90, 5)


def test_a_life_in_two_parts() -> None:
    whole = recording([Row(10, 0, 12), Row(5, 4, 8)], LENGTH)
    parts = RowLifetimes(column(0, 0), column(0, 9), column(2, 12), column(10, 10))
    assert peak_after(whole, replace_lifetimes(whole, column(0), parts)) == Peak(10, 0)


def test_what_shares_memory_keeps_it_for_as_long_as_it_lives_itself() -> None:
    """Check shared memory: in a trace, one row carries the charge of all rows that share its memory."""
    carrier = Row(10, 0, 9, charge=10, last_used=3)
    sharer = Row(10, 3, 9, charge=0, canonical=0)
    whole = recording([carrier, sharer, Row(1, 2, 3)], LENGTH)
    assert peak_after(whole, remove_rows(whole, column(0))) == Peak(10, 3)
    assert peak_after(whole, remove_rows(whole, column(0, 1))) == Peak(1, 2)


HELD = [(10, RegionKind.OUTPUT), (20, RegionKind.TEMPORARY)]


def test_who_took_turns_in_memory_that_is_released_needs_its_own() -> None:
    result = Row(10, -1, LENGTH, charge=10, defined=8)
    guest, small = Row(8, 2, 4, charge=0), Row(3, 5, 6, charge=0)
    whole = recording([result, guest, small, Row(20, 3, 5, region=1)], LENGTH, HELD)
    assert peak_after(whole, shrink_regions(whole, column(0), column(0), column(0))) == Peak(28, 3)
    assert peak_after(whole, shrink_regions(whole, column(0), column(3), column(0))) == Peak(31, 3)
    assert peak_after(whole, shrink_regions(whole, column(0), column(9), column(0))) == Peak(29, 3)


def test_memory_held_for_a_row_shrinks_with_it() -> None:
    whole = recording([Row(10, -1, LENGTH, charge=10, defined=8), Row(20, 3, 5, region=1)], LENGTH, HELD)
    assert peak_after(whole, resize_rows(whole, column(0), column(5))) == Peak(25, 3)


@pytest.mark.parametrize("length", [0, 1])
def test_no_rows(length: int) -> None:
    whole = recording([], length, [(0, RegionKind.TEMPORARY)])
    assert peak_after(whole, remove_rows(whole, column())) == Peak(0, 0)
