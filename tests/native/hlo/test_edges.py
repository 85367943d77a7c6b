"""The compiled list of operands that have a position, against a plain loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.hlo.liveness import edges

rows = st.integers(0, 4)


@settings(max_examples=100, derandomize=True)
@given(
    st.lists(rows, max_size=8),
    st.lists(st.lists(st.integers(-1, 4), max_size=3), min_size=5, max_size=5),
    st.lists(st.integers(-1, 9), min_size=5, max_size=5),
)
def test_every_scheduled_operand_is_listed(order: list[int], operands: list[list[int]], position: list[int]) -> None:
    begin = np.cumsum([0, *map(len, operands)], dtype=np.int64)
    flat = np.array([row for listed in operands for row in listed], np.int32)
    user, operand = edges(np.array(order, np.int64), begin, flat, np.array(position, np.int32))
    expected = [
        (at, position[used]) for at, row in enumerate(order) for used in operands[row] if used >= 0 <= position[used]
    ]
    assert [*zip(user.tolist(), operand.tolist(), strict=True)] == expected
