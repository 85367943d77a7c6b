"""Groups of rows that agree in some columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64

Codes = npt.NDArray[np.integer]


class RowGroups(NamedTuple):
    """Rows that agree in all columns have one number; the groups are in the order of their columns' values."""

    number: I64  # per row: its group
    first: I64  # per group: its first row

    def sums(self, amount: I64) -> I64:
        """Return the sum of `amount` over the rows of each group."""
        return np.bincount(self.number, amount, len(self.first)).astype(np.int64)


def group_rows(columns: Iterable[Codes]) -> RowGroups:
    """Group rows that agree in all columns."""
    key: I64 = np.zeros(1, dtype=np.int64)
    first = key
    for column in columns:
        part = column.astype(np.int64) - int(column.min(initial=0))
        # Renumbered with each column, so that the key (rows x 32 bits) never overflows.
        _, first, key = np.unique(key * (int(part.max(initial=0)) + 1) + part, return_index=True, return_inverse=True)
    return RowGroups(key, first)
