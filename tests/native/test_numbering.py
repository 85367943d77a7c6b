"""Numbers of distinct integers, and requests of frees, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.native.numbering import number_values
from tb_memplugin.native.torch.caching_allocator import free_requests

integers = st.integers(-5, 40) | st.sampled_from([-(2**63), 2**63 - 1, 1 << 47]) | st.integers(-(2**63), 2**63 - 1)


@given(values=st.lists(integers, max_size=60))
def test_numbers_are_positions_among_the_sorted_distinct_values(values: list[int]) -> None:
    distinct, number = number_values(np.array(values, dtype=np.int64))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[number].tolist() == values


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 43])
def test_many_distinct_values_are_numbered_like_few(step: int) -> None:
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(-50_000, 50_000) * step, 2))
    distinct, number = number_values(values)
    assert distinct.tolist() == (np.arange(-50_000, 50_000) * step).tolist()
    assert (distinct[number] == values).all()


@given(
    events=st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=30),
    rows=st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 29)), max_size=10, unique_by=lambda row: row[1]),
)
def test_a_free_was_requested_by_the_last_request_at_its_address(
    events: list[tuple[bool, int]], rows: list[tuple[int, int]]
) -> None:
    rows = [(place, free if free < len(events) else -1) for place, free in rows]
    found = free_requests(
        np.array([request for request, _ in events], dtype=np.uint8),
        np.array([place for _, place in events], dtype=np.int64),
        np.array([place for place, _ in rows], dtype=np.int64),
        np.array([free for _, free in rows], dtype=np.int64),
    )
    for row, (place, free) in zip(found.tolist(), rows, strict=True):
        before = range(len(events) if free < 0 else free + 1)
        assert row == max((i for i in before if events[i] == (True, place)), default=-1)
