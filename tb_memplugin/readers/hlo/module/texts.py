"""Texts of a program's file: names, model paths and source lines, which are read when something asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.model.lazy_text import FEW, TextSource
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import InternedSpans, Spans
from tb_memplugin.native.text.strings import gather, intern
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.module.lists import ListColumns


class Columns(dict[str, Any]):
    """Columns of a table; those of a plan are read when one of them is first used."""

    def __init__(self, columns: ListColumns, data: bytes | memoryview, later: Plan, budget: ReadBudget) -> None:
        """`columns`: with `span`, where each row's message is."""
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

    def text_at(self, span: Spans, row: int = 0) -> str:
        start, length = int(span.start[row]), int(span.length[row])
        return bytes(self.data[start : start + length]).decode("utf-8", "replace")

    def bytes_of(self, spans: Spans, times: int = 2) -> list[bytes]:
        """Return the bytes of each span. `times`: the memory that they and what is made of them take, per byte."""
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
    def scope(self) -> TextSource:
        """The model path of each instruction, from JAX's op_name."""
        return TextSource(lambda rows: self.interned_texts(self.instructions.column("metadata.op_name", rows)))

    def names(self, rows: npt.NDArray[np.integer]) -> Text:
        """Return the names of instructions."""
        if FEW * len(rows) > len(self.instructions["id"]):
            return self.distinct_texts(self.instructions["name"].take(rows))
        return self.distinct_texts(self.instructions.column("name", rows))
