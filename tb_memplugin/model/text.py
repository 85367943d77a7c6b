"""Interned strings, and columns of them, some of which are read on first use."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64, Mask, take_or_missing
from tb_memplugin.model.lazy import Lazy


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """k interned strings. Entry i is `blob[offsets[i]:offsets[i + 1]]`: the file's bytes, which may not be UTF-8."""

    blob: bytes
    offsets: I64  # k + 1

    @staticmethod
    def of(texts: Sequence[str]) -> Strings:
        return Strings.of_bytes([text.encode("utf-8", "surrogateescape") for text in texts])

    @staticmethod
    def of_bytes(texts: Sequence[bytes]) -> Strings:
        return Strings(b"".join(texts), np.cumsum([0, *map(len, texts)], dtype=np.int64))

    @staticmethod
    def joined(first: Strings, second: Strings) -> Strings:
        """Return the entries of the first, then those of the second."""
        return Strings(first.blob + second.blob, np.r_[first.offsets, first.offsets[-1] + second.offsets[1:]])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts(np.arange(len(self))))

    def __getitem__(self, index: int) -> str:
        return self.blob[self.offsets[index] : self.offsets[index + 1]].decode("utf-8", "replace")

    def texts(self, entries: npt.NDArray[np.integer]) -> list[str]:
        """Return these entries, several times as fast as one by one."""
        blob, begins, ends = self.blob, self.offsets[entries].tolist(), self.offsets[entries + 1].tolist()
        return [blob[begin:end].decode("utf-8", "replace") for begin, end in zip(begins, ends, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A column of n strings. `codes[i]` is row i's entry in `strings`, or -1 for the empty string."""

    codes: I32
    strings: Strings

    @staticmethod
    def of(texts: Sequence[str]) -> Text:
        unique = list(dict.fromkeys(texts))
        code = {text: i for i, text in enumerate(unique)}
        return Text(np.array([code[text] for text in texts], dtype=np.int32), Strings.of(unique))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        code = int(self.codes[row])
        return self.strings[code] if code >= 0 else ""

    def take(self, rows: npt.NDArray[np.integer]) -> Text:
        return Text(self.codes[rows], self.strings)

    def sharing(self, rows: npt.NDArray[np.integer]) -> Text:
        """Return a column of these rows with the same strings; `take` may have fewer."""
        return self.take(rows)

    def map(self, function: Callable[[str], Any], default: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Return function(text) per row, and `default` for code -1. The function is called once per distinct text.

        Columns share their strings, so that most strings may not be in this one.
        """
        used = self.used
        results = np.array([*map(function, self.strings.texts(used)), default], dtype=dtype)
        place = np.full(len(self.strings) + 1, len(used))  # code -1 takes the last
        place[used] = np.arange(len(used))
        column: npt.NDArray[Any] = results[place[self.codes]]
        return column

    @property
    def used(self) -> I64:
        """The distinct codes of the rows that have one, rising."""
        found = np.zeros(len(self.strings) + 1, dtype=bool)
        found[self.codes] = True
        return np.flatnonzero(found[:-1])

    def tolist(self) -> list[str]:
        """Return the text of each row. Each distinct text is decoded once."""
        texts: list[str] = self.map(str, "", np.object_).tolist()
        return texts

    def where(self, predicate: Callable[[str], object], *, default: bool = False) -> Mask:
        """Mark the rows whose text satisfies the predicate, which is called once per distinct string."""
        return self.map(lambda text: bool(predicate(text)), default, np.bool_)

    def isin(self, texts: Container[str]) -> Mask:
        """Mark the rows whose text is one of `texts`; rows with code -1 are not."""
        return self.map(texts.__contains__, False, np.bool_)

    def contains(self, word: bytes) -> Mask:
        """Mark the rows whose text contains the word."""
        strings = self.strings
        starts = np.array([match.start() for match in re.finditer(re.escape(word), strings.blob)], dtype=np.int64)
        text = np.searchsorted(strings.offsets, starts, side="right") - 1
        found = np.zeros(len(strings) + 1, dtype=bool)  # the last: no text
        found[text[starts + len(word) <= strings.offsets[text + 1]]] = True
        return found[self.codes]

    @property
    def nonempty(self) -> Mask:
        """Mark the rows that have a text."""
        mask: Mask = np.r_[np.diff(self.strings.offsets) > 0, False][self.codes]
        return mask


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
    _codes: Lazy[I32]

    def __init__(self, source: TextSource, rows: npt.NDArray[np.integer]) -> None:
        """`rows`: the row of the source that each row of the column has its text from; -1 none."""
        own = rows.astype(np.int32, copy=False)
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_rows", own)
        object.__setattr__(self, "_codes", Lazy(lambda: _at(source.all(), own).codes))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> str:
        return self._source.text(int(self._rows[row]))

    @property
    def strings(self) -> Strings:
        return self._source.all().strings

    @property
    def codes(self) -> I32:
        return self._codes()

    def take(self, rows: npt.NDArray[np.integer]) -> Text:
        chosen = self._rows[rows]
        return self._source.of(chosen) if FEW * len(chosen) <= len(self._rows) else LazyText(self._source, chosen)

    def sharing(self, rows: npt.NDArray[np.integer]) -> Text:
        return LazyText(self._source, self._rows[rows])


def _at(whole: Text, rows: npt.NDArray[np.integer]) -> Text:
    """Return a column of these rows' texts; row -1 has none."""
    return Text(take_or_missing(whole.codes, rows), whole.strings)
