"""Repeated fields of numbers, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64

ListColumns = dict[str, Any]


@dataclass(frozen=True)
class Lists:
    """A repeated field of numbers: row r of another table has `values[begin[r]:begin[r + 1]]`."""

    begin: I64
    values: npt.NDArray[Any]  # ids are of 64 bits, rows of 32

    @staticmethod
    def of(table: ListColumns, rows: int) -> Lists:
        return Lists(begin_of_rows(table["parent"], rows), table["value"])

    def count(self) -> I64:
        counts: I64 = np.diff(self.begin)
        return counts

    def nth(self, rows: npt.NDArray[np.integer[Any]], n: int, default: int = -1) -> I64:
        """Return the n-th number of each row, `default` where there is none."""
        at = self.begin[rows] + n
        known = (rows >= 0) & (at < self.begin[rows + 1])
        found = np.full(len(rows), default, dtype=np.int64)
        found[known] = self.values[at[known]]
        return found


def begin_of_rows(parent: npt.NDArray[np.integer[Any]], rows: int) -> I64:
    """Return where each row's entries begin in a table that is sorted by `parent`, and lastly where they end."""
    begin = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(parent, minlength=rows), out=begin[1:])
    return begin
