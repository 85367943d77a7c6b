"""Groups of rows that agree in several columns."""

from __future__ import annotations

import numpy as np

from tb_memplugin.native.row_groups import group_rows


def test_groups_are_in_the_order_of_the_columns() -> None:
    first, second = np.array([2, -1, 2, -1, 2], np.int32), np.array([True, True, False, True, True])
    found = group_rows([first, second])
    assert found.number.tolist() == [2, 0, 1, 0, 2]
    assert found.first.tolist() == [1, 2, 0]
    assert found.sums(np.array([1, 10, 100, 1000, 10000])).tolist() == [1010, 100, 10001]


def test_a_column_may_have_any_numbers() -> None:
    wide = np.array([2**62, -(2**62), 2**62, 0, -(2**62)])
    assert group_rows([wide, np.arange(5) % 2]).number.tolist() == [3, 1, 3, 2, 0]
    assert [column.tolist() for column in group_rows([wide[:0], wide[:0]])] == [[], []]
