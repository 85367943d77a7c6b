"""Columns of a program's file: repeated numbers, and texts, which are read when something asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.text import FEW, Strings, Text, TextSource
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import InternedSpans, Spans
from tb_memplugin.native.text.strings import gather, intern
from tb_memplugin.readers.common.budget import ReadBudget

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

    def nth(self, rows: npt.NDArray[np.integer[Any]], n: int) -> I64:
        """Return the n-th number of each row, -1 where there is none."""
        at = self.begin[rows] + n
        known = (rows >= 0) & (at < self.begin[rows + 1])
        found = np.full(len(rows), -1, dtype=np.int64)
        found[known] = self.values[at[known]]
        return found


def begin_of_rows(parent: npt.NDArray[np.integer[Any]], rows: int) -> I64:
    """Return where each row's entries begin in a table that is sorted by `parent`, and lastly where they end."""
    begin = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(parent, minlength=rows), out=begin[1:])
    return begin


class Columns(dict[str, Any]):
    """Columns of a table; those of a plan are read when one of them is first used."""

    def __init__(self, columns: ListColumns, data: bytes | memoryview, later: Plan, budget: ReadBudget) -> None:
        """`columns` include `span`, the place of each row's message in the file."""
        super().__init__(columns)
        self._data, self._later, self._budget = data, later, budget

    def __missing__(self, name: str) -> Any:
        columns = scan(self._data, self._later, self["span"], self._budget)[""]
        self.update({read: column for read, column in columns.items() if read != "parent"})
        return columns[name]

    def of_rows(self, rows: npt.NDArray[np.integer]) -> ListColumns:
        """Return the later columns of a few rows."""
        return scan(self._data, self._later, self["span"].take(rows), self._budget)[""]

    def column(self, name: str, rows: npt.NDArray[np.integer] | None) -> Any:
        """Return one of the later columns, of a few rows; None: of all."""
        return self[name] if rows is None else self.of_rows(rows)[name]


class ModuleTexts:
    """The file's bytes, and where its computations and instructions are in them."""

    def __init__(
        self, data: bytes | memoryview, budget: ReadBudget, computations: Columns, instructions: Columns
    ) -> None:
        self.data = data
        self.budget = budget
        self.computations = computations
        self.instructions = instructions

    def bytes_of(self, spans: Spans, times: int = 2) -> list[bytes]:
        """Return the bytes of each span. `times`: the memory per byte that is charged, for texts made of them too."""
        self.budget.charge(64 * len(spans.start) + times * int(spans.length.sum()))
        return [bytes(self.data[s : s + n]) for s, n in zip(spans.start.tolist(), spans.length.tolist(), strict=True)]

    def distinct_texts(self, spans: Spans) -> Text:
        """Return a column of mostly distinct texts, not interned."""
        # A long text may be in many rows: an instruction that a schedule lists again and again.
        self.budget.charge(int(spans.length.sum()) + 16 * len(spans.start))
        return Text(np.arange(len(spans.start), dtype=np.int32), Strings(*gather(self.data, *spans)))

    def interned_texts(self, spans: Spans) -> Text:
        """Return a column of repeating texts, interned."""
        codes, first = intern(self.data, *spans)
        return Text(codes, Strings(*gather(self.data, *spans.take(first))))

    def texts_of(self, column: InternedSpans) -> Text:
        """Return a column of texts that the scan has interned."""
        return Text(column.codes, Strings(*gather(self.data, *column.distinct)))

    @cached_property
    def op_name(self) -> TextSource:
        """The model path of each instruction, from JAX's op_name."""
        return TextSource(lambda rows: self.interned_texts(self.instructions.column("metadata.op_name", rows)))

    def names(self, rows: npt.NDArray[np.integer]) -> Text:
        """Return the names of instructions."""
        if FEW * len(rows) > len(self.instructions["id"]):
            return self.distinct_texts(self.instructions["name"].take(rows))
        return self.distinct_texts(self.instructions.column("name", rows))
