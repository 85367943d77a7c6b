"""The search for the largest value that fits, on memory that rises, falls, and fails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.fit.search import Search

# GiB that an 8-layer transformer reserves on a TPU v5e, by batch: the compiler recomputes from 52 on, and refuses 176.
TRANSFORMER = {
    0: 3.61, 8: 5.38, 16: 7.16, 32: 10.69, 52: 14.30, 56: 14.25, 60: 14.07, 64: 14.76, 68: 14.39, 72: 13.90, 80: 13.79,
    96: 14.32, 128: 14.58, 160: 14.92, 172: 15.63, 176: 15.91,
}  # fmt: skip

# The same of another one, with a vocabulary of 32,000: 464 is refused, and 468 is not.
LANGUAGE_MODEL = {
    8: 1.623, 16: 2.296, 32: 3.654, 48: 4.914, 52: 5.226, 64: 6.171, 96: 8.685, 128: 11.199, 160: 13.585,
    192: 14.683, 224: 14.275, 256: 15.161, 288: 14.960, 320: 14.948, 352: 15.140, 384: 15.113, 416: 14.715,
    432: 14.823, 440: 15.082, 448: 15.338, 456: 15.585, 460: 15.713, 464: 15.841, 468: 15.740, 472: 16.096,
    476: 16.224, 480: 16.353, 496: 16.864, 512: 17.376, 544: 18.400, 576: 20.267, 640: 24.284, 768: 32.315,
    1024: 44.252,
}  # fmt: skip


def transformer(batch: int) -> int:
    gib = np.interp(batch, list(TRANSFORMER), list(TRANSFORMER.values()))
    return int((gib if batch <= 176 else 15.91 + (batch - 176) * 0.22) * 2**30)


@pytest.mark.parametrize("high", [256, 512, 1024])
@pytest.mark.parametrize("step", [1, 4])
def test_a_line_says_55_but_the_compiler_fits_172(high: int, step: int) -> None:
    search = Search(range(step, high + 1, step), int(15.75 * 2**30), transformer)
    assert search.largest() == 172 + (step == 1)
    assert len(search.tried) <= 12


@pytest.mark.parametrize("high", [512, 1024, 4096])
def test_a_value_above_one_that_is_refused_is_found(high: int) -> None:
    sizes, of_batch = list(LANGUAGE_MODEL), list(LANGUAGE_MODEL.values())
    search = Search(range(4, high + 1, 4), int(15.75 * 2**30), lambda b: int(np.interp(b, sizes, of_batch) * 2**30))
    assert search.largest() == 468
    assert len(search.tried) <= 12


@given(st.integers(1, 1024), st.integers(0, 100), st.integers(1, 50))
def test_of_rising_memory_the_answer_is_exact(largest: int, fixed: int, each: int) -> None:
    search = Search(range(1, 1025), fixed + each * largest, lambda value: fixed + each * value)
    assert search.largest() == largest
    assert len(search.tried) <= 12


@given(st.integers(1, 1024), st.integers(0, 100), st.integers(1, 50), st.integers(1, 1024), st.integers(1, 100))
def test_memory_that_is_said_to_rise_takes_few_probes(largest: int, fixed: int, each: int, at: int, more: int) -> None:
    search = Search(range(1, 1025), fixed + each * largest, lambda value: fixed + each * value, is_rising=True)
    assert search.largest() == largest
    assert len(search.tried) <= 4 or largest < 32  # below the second value, a bisection with lines
    again = Search(range(1, 1025), fixed + each * largest, lambda value: fixed + each * value, is_rising=True)
    assert again.largest_from(at - 1, at - 1 + more) == (largest if at <= largest else None)
    assert len(again.tried) <= 5 or largest < at + more


def test_nothing_fits_and_everything_fits() -> None:
    assert Search(range(1, 9), 10, lambda value: 100).largest() is None
    assert Search(range(1, 9), 10, lambda value: 1).largest() == 8
    assert Search([5], 10, lambda value: 1).largest() == 5


def test_a_value_that_cannot_be_compiled_does_not_fit() -> None:
    assert Search(range(1, 100), 10**9, lambda value: None if value > 37 else value).largest() == 37


def test_a_larger_value_that_fits_again_is_found() -> None:
    again = {20: 1, 21: 200, 22: 90}
    search = Search(range(1, 41), 100, lambda value: again.get(value, 5 * value if value <= 20 else 200))
    assert search.largest() == 22
