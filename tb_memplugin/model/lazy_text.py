"""Columns of texts that are read on first use: those of a few rows, or all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.text import Strings, Text

MAX_FEW = 64  # requests for a few rows, after which all are read: a request takes as long as thousands of rows
FEW = 8  # "a few" are at most this fraction of a column


class TextSource:
    """Texts of a table's rows. Several columns may refer to the same source, and then share their strings."""

    def __init__(self, read: Callable[[I64 | None], Text]) -> None:
        """`read`: return the texts of these rows, all 0 or above; None: of all rows."""
        self._read: Callable[[I64 | None], Text] | None = read
        self._all = Lazy(partial(read, None))
        self._requests = 0

    def all(self) -> Text:
        whole = self._all()
        self._read = None  # releases what the texts are read from
        return whole

    def of(self, rows: npt.NDArray[np.integer]) -> Text:
        """Return the texts of a few rows; row -1 has none."""
        read = self._read
        self._requests += 1
        if read is None or self._requests > MAX_FEW:
            return _at(self.all(), rows)
        known, which = np.unique(rows, return_inverse=True)
        first = int(np.searchsorted(known, 0))
        found = read(known[first:].astype(np.int64))
        return _at(found, which.ravel() - first)

    def text(self, row: int) -> str:
        """Return one text; row -1 has none. Loops over rows read all texts soon."""
        if self._read is not None and self._requests < MAX_FEW:
            return self.of(np.array([row]))[0]
        return self.all()[row] if row >= 0 else ""


class LazyText(Text):
    """A column of texts that are not read yet."""

    __slots__ = ("_codes", "_rows", "_source")

    _source: TextSource
    _rows: I32
    _codes: I32 | None

    def __init__(self, source: TextSource, rows: npt.NDArray[np.integer]) -> None:
        """`rows`: the row of the source that each row of the column has its text from; -1 none."""
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_rows", rows.astype(np.int32, copy=False))
        object.__setattr__(self, "_codes", None)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> str:
        return self._source.text(int(self._rows[row]))

    @property
    def strings(self) -> Strings:
        return self._source.all().strings

    @property
    def codes(self) -> I32:
        if self._codes is None:
            object.__setattr__(self, "_codes", _at(self._source.all(), self._rows).codes)
        codes: I32 | None = self._codes
        assert codes is not None
        return codes

    def take(self, rows: npt.NDArray[np.integer]) -> Text:
        chosen = self._rows[rows]
        return self._source.of(chosen) if FEW * len(chosen) <= len(self._rows) else LazyText(self._source, chosen)

    def sharing(self, rows: npt.NDArray[np.integer]) -> Text:
        return LazyText(self._source, self._rows[rows])


def _at(whole: Text, rows: npt.NDArray[np.integer]) -> Text:
    """Return a column of these rows' texts; row -1 has none."""
    if not len(whole):
        return Text(np.full(len(rows), -1, dtype=np.int32), whole.strings)
    return Text(np.where(rows >= 0, whole.codes[rows], -1).astype(np.int32), whole.strings)
