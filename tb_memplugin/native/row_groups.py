"""Groups of rows that agree in several columns."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.native.numbering import number_values

MAX_RANGE = 1 << 32  # of a column, so that rows x range fits 64 bits


class RowGroups(NamedTuple):
    """Rows that agree in all columns have one number; the groups are in the order of their columns' values."""

    number: npt.NDArray[np.int64]  # per row: its group
    first: npt.NDArray[np.int64]  # per group: its first row

    def sums(self, amount: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sum of `amount` over the rows of each group."""
        return np.bincount(self.number, amount, len(self.first)).astype(np.int64)


def group_rows(columns: Iterable[npt.NDArray[Any]]) -> RowGroups:
    """Group rows that agree in all columns, which are integers or booleans."""
    key: npt.NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    for column in columns:
        part = np.ascontiguousarray(column, dtype=np.int64)
        low, high = int(part.min(initial=0)), int(part.max(initial=0))
        if high - low >= MAX_RANGE:
            low, (distinct, part) = 0, number_values(part)
            high = len(distinct) - 1
        _, key = number_values(key * (high - low + 1) + (part - low))
    first = np.empty(int(key.max(initial=-1)) + 1, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # the last assignment wins
    return RowGroups(key, first)
