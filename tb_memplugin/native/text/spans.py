"""Positions of texts in a file's bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Spans(NamedTuple):
    """Text i is `data[start[i] : start[i] + length[i]]`; its length is 0 where the field is absent."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]

    def take(self, rows: npt.NDArray[np.integer]) -> Spans:
        return Spans(self.start[rows], self.length[rows])

    def bytes_at(self, data: bytes | memoryview, row: int = 0) -> bytes:
        """Return the bytes of one row."""
        start = int(self.start[row])
        return bytes(data[start : start + int(self.length[row])])

    def text_at(self, data: bytes | memoryview, row: int = 0) -> str:
        """Return the text of one row. Bytes that are no UTF-8 are replaced."""
        return self.bytes_at(data, row).decode("utf-8", "replace")


class InternedSpans(NamedTuple):
    """A column of texts. Row i is `distinct` text `codes[i]`; its code is -1 where the field is absent or empty."""

    codes: npt.NDArray[np.int32]
    distinct: Spans
