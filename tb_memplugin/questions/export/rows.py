"""The exported table of a recording, one row per allocation, and its cells as text.

Every kind of recording has the same columns, so that one file can contain several; missing facts are unknown values.
formats.py writes the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.isolate import Failed, each
from tb_memplugin.model.arrays import I32, Mask
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.recording.columns import EXPORTED, ChosenRows, Numbers
from tb_memplugin.questions.recording.stack_texts import StackCells, truncate
from tb_memplugin.questions.recording.summary import summary

ExportColumn = Numbers | Mask | Text
ExportTable = dict[str, ExportColumn]  # of equal lengths, by name
# Rows per piece. Few enough that as many different long stacks fit in memory as text; enough that the cost per piece
# does not matter, and that Parquet, where each piece is a row group, is read fast.
PIECE_ROWS = 16_384


def pieces(recording: Recording) -> Iterator[ExportTable]:
    """Yield the table of a recording in pieces of some rows; at least one piece, which may be empty."""
    stacks, count = StackCells(recording.stacks), len(recording.allocations)
    for begin in range(0, max(count, 1), PIECE_ROWS):
        rows = ChosenRows(recording, np.arange(begin, min(begin + PIECE_ROWS, count)), stacks)
        yield {name: column.cells(rows) for name, column in EXPORTED.items()}


def exportable(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Failed]]:
    """Return the recordings whose table can be made, and a problem for each other one.

    The first piece needs every analysis. These are memoized, so making it twice costs little.
    """
    return each(recordings, lambda recording: (summary(recording), next(pieces(recording)), recording)[-1])


def export_cells(column: ExportColumn, encode: Callable[[str], str], unknown: str) -> list[Any]:
    """Return each row's cell: a number, or an encoded text. Each distinct text is encoded once."""
    if isinstance(column, Text):
        texts, code = distinct_texts(column)
        cells = _objects([encode(text) for text in texts])[code]
    elif isinstance(column, Numbers):
        cells = column.values.astype(object)
        cells[~column.known] = unknown
    else:
        cells = _objects(["false", "true"])[column.astype(np.int8)]
    row_by_row: list[Any] = cells.tolist()
    return row_by_row


def distinct_texts(column: Text) -> tuple[list[str], I32]:
    """Return the distinct texts of a column, cut to the size of a cell, and the index of each row's text."""
    codes, code = np.unique(column.codes, return_inverse=True)
    texts = [truncate(column.strings[i]) if i >= 0 else "" for i in codes.tolist()]
    return texts, code.astype(np.int32)


def _objects(texts: list[str]) -> npt.NDArray[np.object_]:
    return np.array(texts, dtype=object)
