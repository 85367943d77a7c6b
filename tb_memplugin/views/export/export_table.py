"""The columns of a table for other tools, and what each of their rows is as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.text import Text

Mask = npt.NDArray[np.bool_]

LONGEST = 131_071  # characters of a cell: Python's csv reads one more, and a formula is made harmless by one
CUT = "..."


class Numbers(NamedTuple):
    """Integers, and which of them are known."""

    values: I64 | npt.NDArray[np.uint64]
    known: Mask


Column = Numbers | Mask | Text
Table = dict[str, Column]  # of equal lengths, by name


def cells(column: Column, written: Callable[[str], str], unknown: str) -> list[Any]:
    """What to write in each row: a number, or a text, which is worked out once for all rows that have it."""
    if isinstance(column, Text):
        texts, code = distinct(column)
        found = _objects([written(text) for text in texts])[code]
    elif isinstance(column, Numbers):
        found = column.values.astype(object)
        found[~column.known] = unknown
    else:
        found = _objects(["false", "true"])[column.astype(np.int8)]
    row_by_row: list[Any] = found.tolist()
    return row_by_row


def distinct(column: Text) -> tuple[list[str], I32]:
    """The texts that a column shows, as far as they fit a cell, and which of them each row has."""
    codes, code = np.unique(column.codes, return_inverse=True)
    texts = [fitting(column.strings[i]) if i >= 0 else "" for i in codes.tolist()]
    return texts, code.astype(np.int32)


def fitting(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - len(CUT)] + CUT


def _objects(texts: list[str]) -> npt.NDArray[np.object_]:
    return np.array(texts, dtype=object)
