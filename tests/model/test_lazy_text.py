"""Text columns that are read on first use, against the same columns read at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.text import MAX_FEW, LazyText, Text, TextSource

TEXTS = [f"text {n % 7}" if n % 5 else "" for n in range(200)]


class Reads:
    """A source that counts how many rows were read at once."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.source = TextSource(self.read)

    def read(self, rows: I64 | None) -> Text:
        wanted = range(len(TEXTS)) if rows is None else rows.tolist()
        self.counts.append(len(wanted))
        return Text.of([TEXTS[row] for row in wanted])


def texts(column: Text) -> list[str]:
    return [column[row] for row in range(len(column))]


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(-1, 199), max_size=60), st.data())
def test_a_column_and_rows_of_it_have_the_texts_of_their_source(rows: list[int], data: st.DataObject) -> None:
    column = LazyText(Reads().source, np.array(rows, np.int64))
    expected = [TEXTS[row] if row >= 0 else "" for row in rows]
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=60)) if rows else []
    if data.draw(st.booleans()):
        assert [column.strings[code] if code >= 0 else "" for code in column.codes.tolist()] == expected
    assert texts(column.take(np.array(chosen, np.int64))) == [expected[row] for row in chosen]
    assert texts(column) == expected and len(column) == len(expected)
    assert column.isin({"text 1"}).tolist() == [text == "text 1" for text in expected]


def test_a_few_rows_are_read_without_the_others() -> None:
    reads = Reads()
    column = LazyText(reads.source, np.arange(200))
    assert texts(column.take(np.array([3, 8, 3]))) == [TEXTS[3], TEXTS[8], TEXTS[3]]
    assert column[-1] == TEXTS[-1]
    assert reads.counts == [2, 1]


def test_many_requests_for_a_few_rows_read_all_once() -> None:
    reads = Reads()
    column = LazyText(reads.source, np.arange(200))
    assert [column[row] for row in range(200)] == TEXTS
    assert len(reads.counts) == MAX_FEW + 1
    assert reads.counts[-1] == 200


def test_columns_of_one_source_share_their_strings() -> None:
    source = Reads().source
    first, second = LazyText(source, np.arange(200)), LazyText(source, np.arange(199, -1, -1))
    assert first.strings is second.strings
    assert first.codes.tolist() == second.codes.tolist()[::-1]


def test_a_part_of_a_column_that_shares_its_strings_is_not_read_yet() -> None:
    reads = Reads()
    column = LazyText(reads.source, np.arange(200))
    part = column.sharing(np.array([4, 9]))
    assert not reads.counts
    assert part.strings is column.strings
    assert texts(part) == [TEXTS[4], TEXTS[9]]
