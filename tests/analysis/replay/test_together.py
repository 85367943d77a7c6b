"""Changes that are made together, against a plain Python product at every position."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import Row, recording

from tb_memplugin.analysis.replay.together import together
from tb_memplugin.analysis.replay.what_if import Change, always, peak_after, remove_rows, resize_rows, shrink_regions
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.model.arrays import I64, sum_over_time
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording

LENGTH = 12
spans = st.tuples(st.integers(0, LENGTH - 1), st.integers(1, LENGTH)).map(lambda s: (min(s), max(s) + (s[0] == s[1])))
rows_of = st.lists(st.builds(lambda size, span: Row(size, *span), st.integers(1, 50), spans), min_size=1, max_size=6)
# Of each row, the percentage that each of two changes leaves.
two_changes = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=6, max_size=6)


def live_after(whole: Recording, change: Change) -> I64:
    return usage(whole).live + sum_over_time(whole.length, *change[:3])


def leaving(whole: Recording, percent: list[int]) -> Change:
    rows = np.flatnonzero([one < 100 for one in percent])
    kept = np.array([percent[row] for row in rows.tolist()], dtype=np.int64)
    return resize_rows(whole, rows, whole.allocations.size[rows] * kept // 100)


def changes_of(rows: list[Row], left: list[tuple[int, int]]) -> tuple[Recording, list[Change]]:
    whole = recording(rows, LENGTH)
    return whole, [leaving(whole, [each[which] for each in left[: len(rows)]]) for which in (0, 1)]


@given(rows_of, two_changes)
def test_together_they_leave_the_product_of_what_each_leaves(rows: list[Row], left: list[tuple[int, int]]) -> None:
    whole, both = changes_of(rows, left)
    expected = [
        sum(
            int((row.size * a // 100) * (row.size * b // 100) / row.size)
            for row, (a, b) in zip(rows, left, strict=False)
            if row.start <= position < row.end
        )
        for position in range(LENGTH)
    ]
    found = live_after(whole, together(whole, both, ["dtype", "microbatching"]))
    assert np.abs(found - expected).max() <= len(rows)  # each is rounded


@given(rows_of, two_changes)
def test_at_each_position_they_save_as_much_as_the_best_and_at_most_the_sum(
    rows: list[Row], left: list[tuple[int, int]]
) -> None:
    whole, both = changes_of(rows, left)
    for kinds in (["a", "b"], ["a", "a"]):
        made = together(whole, both, kinds)
        saved = usage(whole).live - live_after(whole, made)
        first, second = (usage(whole).live - live_after(whole, one) for one in both)
        assert (saved >= np.maximum(first, second)).all()
        assert (saved <= first + second + len(rows)).all()
        untouched = [row.size for row, kept in zip(rows, left, strict=False) if kept == (100, 100)]
        assert peak_after(whole, made).bytes >= max(untouched, default=0)


@given(rows_of, two_changes)
def test_a_change_of_the_same_kind_is_not_made_twice(rows: list[Row], left: list[tuple[int, int]]) -> None:
    whole, (one, _) = changes_of(rows, left)
    for changes in ([one], [one, one]):
        made = together(whole, changes, ["a"] * len(changes))
        assert live_after(whole, made).tolist() == live_after(whole, one).tolist()


def test_what_two_changes_remove_is_removed_once_and_what_they_add_is_added() -> None:
    whole = recording([Row(40, 0, 6), Row(20, 2, 4)], 8)
    gone = remove_rows(whole, np.array([0]))
    assert peak_after(whole, together(whole, [gone, gone], ["donation", "offload"])).bytes == 20
    both = [always(whole, 3), always(whole, 4)]
    assert peak_after(whole, together(whole, both, ["a", "b"])).bytes == peak(whole).bytes + 7


def test_a_temporary_that_two_changes_evict_needs_memory_once() -> None:
    """A result of 40 bytes lends its memory to a temporary of 30; one change removes the result, one halves it."""
    kinds = [(40, RegionKind.OUTPUT), (40, RegionKind.TEMPORARY)]
    rows = [
        Row(40, -1, 8, region=0, defined=6, last_used=8),
        Row(30, 1, 3, region=0, charge=0),
        Row(10, 0, 8, region=1),
    ]
    whole = recording(rows, 8, kinds)
    removed = shrink_regions(whole, np.array([0]), 0, np.array([0]))
    halved = shrink_regions(whole, np.array([0]), 20, np.array([0]))
    assert [peak_after(whole, one).bytes for one in (removed, halved)] == [40, 60]
    assert peak_after(whole, together(whole, [removed, halved], ["donation", "dtype"])).bytes == 40
