"""Cells of exported tables as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, Mask
from tb_memplugin.model.text import Text
from tb_memplugin.questions.recording.columns import Numbers as Numbers
from tb_memplugin.questions.recording.stack_texts import truncate

ExportColumn = Numbers | Mask | Text
ExportTable = dict[str, ExportColumn]  # of equal lengths, by name


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
