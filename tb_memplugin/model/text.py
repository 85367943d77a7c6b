"""Interned strings, and columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64


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

    def __getitem__(self, index: int) -> str:
        return self.blob[self.offsets[index] : self.offsets[index + 1]].decode("utf-8", "replace")


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
