"""Questions to text columns: the answer of plain Python, with each distinct string visited once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.model.text import Strings, Text

COLUMNS = st.lists(st.sampled_from(["", "a", "b", "add", "copy", "\N{GREEK SMALL LETTER PI}"]))


@given(COLUMNS)
def test_masks_are_those_of_the_rows(texts: list[str]) -> None:
    column = Text.of(texts)
    assert column.nonempty.tolist() == [bool(text) for text in texts]
    assert column.isin({"a", "copy", "no such text"}).tolist() == [text in ("a", "copy") for text in texts]
    assert column.where(lambda text: "a" in text).tolist() == ["a" in text for text in texts]
    assert column.map(len, -1, np.int64).tolist() == [len(text) for text in texts]


def test_each_distinct_string_is_visited_once() -> None:
    visited: list[str] = []
    column = Text.of(["copy", "add", "copy", "copy"])
    assert column.where(lambda text: not visited.append(text)).all()  # type: ignore[func-returns-value]
    assert visited == ["copy", "add"] == list(column.strings)


def test_rows_without_a_string_have_the_default() -> None:
    column = Text(np.array([-1, 0, -1], np.int32), Strings.of(["add"]))
    assert column.nonempty.tolist() == [False, True, False]
    assert column.isin({"", "add"}).tolist() == [False, True, False]
    assert column.where(lambda text: text != "add", default=True).tolist() == [True, False, True]
    assert column.map(len, 7).tolist() == [7, 3, 7]


def test_columns_without_rows_or_strings() -> None:
    assert len(Text.of([]).where(bool)) == len(Text.of([]).map(len, 0)) == 0
    assert Text(np.array([-1], np.int32), Strings.of([])).nonempty.tolist() == [False]
