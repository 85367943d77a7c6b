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


class InternedSpans(NamedTuple):
    """A column of texts. Row i is `distinct` text `codes[i]`; its code is -1 where the field is absent or empty."""

    codes: npt.NDArray[np.int32]
    distinct: Spans
