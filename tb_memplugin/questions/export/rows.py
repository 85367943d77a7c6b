"""The exported table of a recording: one row per allocation.

Every kind of recording has the same columns, so that one file can contain several; missing facts are unknown values.
The modules csv, json and parquet write the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tb_memplugin.analysis.isolate import Failed, each
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.export.cells import ExportTable
from tb_memplugin.questions.recording.columns import EXPORTED, ChosenRows
from tb_memplugin.questions.recording.stack_texts import StackCells
from tb_memplugin.questions.recording.summary import summary

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
