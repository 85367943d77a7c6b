"""The compiled loops over rows that share bytes, against plain Python, byte by byte."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.hlo.shared_bytes import charge_once, union_over_time

same_each_time = settings(max_examples=500, derandomize=True)
LENGTH = 14


class Life(NamedTuple):
    region: int
    start: int
    offset: int
    size: int
    end: int
    last_used: int


@st.composite
def lives(draw: st.DrawFn) -> list[Life]:
    """Return rows as compilers place them, and others: sorted as `charge_once` expects."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, 9))
        end = start + draw(st.integers(0, 4))
        found.append(
            Life(
                draw(st.integers(0, 1)), start, draw(st.integers(0, 6)), draw(st.integers(0, 5)), end,
                draw(st.integers(start, max(end - 1, start))),
            )
        )  # fmt: skip
    return sorted(found, key=lambda row: (row.region, row.start, -row.end))


class Charged(NamedTuple):
    end: list[int]
    last_used: list[int]
    charge: list[int]
    pairs: list[tuple[int, int]]


def charged(rows: list[Life]) -> Charged:
    region, start, offset, size, end, last_used = (
        (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
        if rows
        else (np.empty(0, dtype=np.int64),) * 6
    )
    end, last_used, size = end.copy(), last_used.copy(), size.copy()
    left, right = charge_once(region, offset, start, end, last_used, size)
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    return Charged(end.tolist(), last_used.tolist(), size.tolist(), pairs)


def bytes_at(rows: list[Life], position: int) -> set[tuple[int, int]]:
    """Return the bytes that rows occupy at a position, as (region, byte)."""
    live = (row for row in rows if row.start <= position < row.end)
    return {(row.region, byte) for row in live for byte in range(row.offset, row.offset + row.size)}


@same_each_time
@given(lives())
def test_each_byte_is_charged_once(rows: list[Life]) -> None:
    out = charged(rows)
    for position in range(LENGTH):
        live = [i for i, row in enumerate(rows) if row.start <= position < out.end[i]]
        cut = [row._replace(end=end) for row, end in zip(rows, out.end, strict=True)]
        assert sum(out.charge[i] for i in live) <= len(bytes_at(cut, position))


@same_each_time
@given(lives())
def test_the_result_is_that_of_plain_python(rows: list[Life]) -> None:
    assert charged(rows) == charged_by_hand(rows)


def charged_by_hand(rows: list[Life]) -> Charged:
    """Repeat `charge_once` with a set of bytes per row."""
    end, last_used = [row.end for row in rows], [row.last_used for row in rows]
    owned: list[set[tuple[int, int]]] = [set() for _ in rows]
    charge = [row.size for row in rows]
    pairs = []
    for i, row in enumerate(rows):
        if not row.size or end[i] <= row.start:
            continue
        own = {(row.region, byte) for byte in range(row.offset, row.offset + row.size)}
        touched = [r for r in range(i) if owned[r] & own and end[r] > row.start]
        touched.sort(key=lambda r: min(owned[r] & own))
        pairs += [(r, i) for r in touched]
        others = set[tuple[int, int]]().union(*(owned[r] for r in touched))
        covers = [owned[r] <= own for r in touched]
        if own <= others and all(end[r] >= end[i] for r in touched) and (len(touched) == 1 or not all(covers)):
            charge[i] = 0
            continue
        until = end[i]
        for r, covered in zip(touched, covers, strict=True):
            if covered or last_used[r] <= row.start:
                until = max(until, end[r]) if covered else until
                owned[r] = set()
                if rows[r].start < row.start:
                    end[r] = row.start
                else:
                    charge[r] = 0
        if until > end[i]:
            end[i], last_used[i] = until, until - 1
        live = [owned[r] for r in range(i) if end[r] > row.start]
        owned[i] = own - set[tuple[int, int]]().union(*live)
        charge[i] = len(owned[i])
    return Charged(end, last_used, charge, pairs)


def test_a_tensor_takes_over_the_slices_that_it_lies_on() -> None:
    slices = [Life(0, p, 4 * p, 4, 9, 8) for p in range(4)]
    out = charged([*slices, Life(0, 5, 0, 16, 10, 9)])
    assert out.end == [5, 5, 5, 5, 10]
    assert out.charge == [4, 4, 4, 4, 16]


def test_an_in_place_result_takes_over_its_operand() -> None:
    out = charged([Life(0, 0, 0, 8, 4, 3), Life(0, 3, 0, 8, 7, 6)])
    assert (out.end, out.charge) == ([3, 7], [8, 8])


def test_a_loop_s_parameter_shares_the_memory_of_its_operand() -> None:
    out = charged([Life(0, 0, 0, 8, 9, 8), Life(0, 3, 0, 8, 5, 4)])
    assert (out.end, out.charge, out.pairs) == ([9, 5], [8, 0], [(0, 1)])


def test_memory_that_is_taken_over_lives_as_long_as_before() -> None:
    out = charged([Life(0, 0, 0, 4, 9, 8), Life(0, 1, 4, 4, 3, 2), Life(0, 2, 0, 8, 5, 4)])
    assert (out.end, out.last_used[2]) == ([2, 2, 9], 8)


def test_a_view_of_a_part_has_no_charge_and_an_overhang_only_its_own_bytes() -> None:
    whole = Life(0, 0, 0, 8, 9, 8)
    assert charged([whole, Life(0, 2, 2, 3, 4, 3)]).charge == [8, 0]
    assert charged([whole, Life(0, 2, 6, 5, 4, 3)]).charge == [8, 3]


def test_regions_are_apart() -> None:
    assert charged([Life(0, 0, 0, 8, 4, 3), Life(1, 1, 0, 8, 4, 3)]).charge == [8, 8]


@same_each_time
@given(lives())
def test_the_union_over_time_is_that_of_the_bytes(rows: list[Life]) -> None:
    rows = [row for row in rows if row.end > row.start]
    events = sorted((row.region, at, i, at == row.start) for i, row in enumerate(rows) for at in (row.start, row.end))
    order = np.array([i for *_, i, _ in events], dtype=np.int64)
    begins = np.array([begin for *_, begin in events], dtype=np.int8)
    region, _, offset, size, *_ = (
        (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
        if rows
        else (np.empty(0, dtype=np.int64),) * 6
    )
    change = union_over_time(region, offset, size, order, begins).tolist()
    for position in range(LENGTH):
        live = sum(more for more, (_, at, _, _) in zip(change, events, strict=True) if at <= position)
        assert live == len(bytes_at(rows, position))
