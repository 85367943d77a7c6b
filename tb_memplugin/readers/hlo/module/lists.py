"""Repeated fields of numbers, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.native.text.spans import Spans

ListColumns = dict[str, Any]


def last_entries(table: ListColumns, rows: npt.NDArray[np.integer[Any]]) -> I64:
    """Return the last entry of each row in the table of a repeated or sparse field, -1 where it has none."""
    parent = table["parent"]
    at: I64 = np.searchsorted(parent, rows, side="right") - 1
    return np.where(np.append(parent, -1)[at] == rows, at, -1)


def sparse_numbers(table: ListColumns, rows: npt.NDArray[np.integer[Any]]) -> I64:
    """Return the number of each row, 0 where it has none."""
    numbers: I64 = np.append(table["value"], 0)[last_entries(table, rows)]
    return numbers


def sparse_spans(table: ListColumns, rows: npt.NDArray[np.integer[Any]]) -> Spans:
    """Return the text of each row, an empty one where it has none."""
    at, texts = last_entries(table, rows), table["value"]
    return Spans(np.append(texts.start, 0)[at], np.append(texts.length, 0)[at])


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
