"""Where pieces of text lie in the bytes of a file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Spans(NamedTuple):
    """Piece i is `data[start[i] : start[i] + length[i]]`; length 0 where the field was absent."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]

    def take(self, rows: npt.NDArray[np.integer]) -> Spans:
        return Spans(self.start[rows], self.length[rows])
