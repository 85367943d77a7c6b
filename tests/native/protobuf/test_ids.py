"""Compiled look-ups of rows by id, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.protobuf.ids import rows_in_order, rows_in_table, table_of

few = settings(max_examples=150, derandomize=True)
ANY = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-5, 40)


def first_rows(ids: list[int], wanted: list[int]) -> list[int]:
    rows = {id_: row for row, id_ in reversed([*enumerate(ids)])}
    return [rows.get(id_, -1) for id_ in wanted]


@few
@given(st.lists(NEAR, min_size=1, max_size=30), st.lists(NEAR | ANY, max_size=30))
def test_ids_in_a_table(ids: list[int], wanted: list[int]) -> None:
    low = min(ids)
    table = table_of(np.array(ids, np.int64), low, max(ids) - low + 1)
    assert rows_in_table(table, low, np.array(wanted, np.int64)).tolist() == first_rows(ids, wanted)


@few
@given(st.lists(NEAR | ANY, max_size=40), st.data())
def test_ids_in_order(ids: list[int], data: st.DataObject) -> None:
    known = st.sampled_from(ids) if ids else ANY
    wanted = data.draw(st.lists(known | NEAR | ANY, max_size=40))
    column = np.array(ids, np.int64)
    order = np.argsort(column, kind="stable")
    assert rows_in_order(column[order], order, np.array(wanted, np.int64)).tolist() == first_rows(ids, wanted)
