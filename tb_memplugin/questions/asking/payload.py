"""Tables in binary form: columns that a browser uses as typed arrays without copying.

    "TBM1" | u32 length of the header | JSON header, padded with spaces | buffers, each aligned to 8, little-endian

The header names tables, their columns (type, offset, dictionary) and dictionaries (UTF-8 text with u32 offsets);
offsets count from the end of the header.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.text import Strings, Text

MAGIC = b"TBM1"
ALIGNMENT = 8
TYPES = {"u1": "u8", "i4": "i32", "u4": "u32", "f8": "f64"}

Column = npt.NDArray[Any] | Text
Table = Mapping[str, Column]


class _Buffers:
    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.size = 0
        self._columns: dict[tuple[int, int], list[tuple[int, bytes]]] = {}  # by length and checksum

    def add_column(self, array: npt.NDArray[Any]) -> int:
        """Append a column, or find one of the same bytes; return its offset. Many columns are empty throughout."""
        piece = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        alike = self._columns.setdefault((len(piece), crc32(piece)), [])
        for offset, other in alike:
            if piece == other:
                return offset
        alike.append((self.size, piece))
        return self.add(piece)

    def add(self, piece: bytes | memoryview) -> int:
        """Append a piece; return its offset."""
        at = self.size
        gap = -len(piece) % ALIGNMENT
        self.pieces += [piece, b"\0" * gap]
        self.size += len(piece) + gap
        return at


def encode(meta: Mapping[str, Any], tables: Mapping[str, Table]) -> bytes:
    """Return tables as bytes. The columns of a table have equal lengths.

    int64 becomes int32 where all values fit, else float64, exact to 2**53.
    """
    buffers = _Buffers()
    dictionaries: dict[str, dict[str, int]] = {}
    known: dict[int, str] = {}
    described: dict[str, Any] = {}
    for name, table in tables.items():
        columns: dict[str, Any] = {}
        length = 0
        for column_name, column in table.items():
            length = len(column)
            if isinstance(column, Text):
                # Two columns of one dictionary share it.
                if id(column.strings) not in known:
                    known[id(column.strings)] = f"d{len(known)}"
                    dictionaries[known[id(column.strings)]] = _dictionary(column.strings, buffers)
                columns[column_name] = {
                    "type": "u32",  # -1, the empty text, is past every dictionary
                    "offset": buffers.add_column(column.codes),
                    "dictionary": known[id(column.strings)],
                }
            else:
                array = _fitting(column)
                columns[column_name] = {"type": TYPES[array.dtype.str[1:]], "offset": buffers.add_column(array)}
        described[name] = {"length": length, "columns": columns}
    header = json.dumps(
        {"meta": meta, "tables": described, "dictionaries": dictionaries}, separators=(",", ":"), allow_nan=False
    ).encode()
    header += b" " * (-(len(MAGIC) + 4 + len(header)) % ALIGNMENT)
    return b"".join([MAGIC, len(header).to_bytes(4, "little"), header, *buffers.pieces])


def _fitting(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype != np.int64:
        return column
    fits = not len(column) or (column.min() >= -(2**31) and column.max() < 2**31)
    return column.astype(np.int32 if fits else np.float64)


def _dictionary(strings: Strings, buffers: _Buffers) -> dict[str, int]:
    offsets = strings.offsets.astype(np.uint32)  # no answer contains 4 GiB of text
    return {
        "length": len(strings),
        "offsets": buffers.add_column(offsets),
        "bytes": buffers.add(strings.blob),
        "size": len(strings.blob),
    }


def columns_of(source: object, names: Sequence[str]) -> Table:
    """Return a table of the attributes of these names."""
    return {name: getattr(source, name) for name in names}


def narrow(column: npt.NDArray[np.int64]) -> I32:
    """Return positions or row numbers as 32-bit integers."""
    return column.astype(np.int32)


def compact(text: Text) -> Text:
    """Return the same column with only the strings that it uses, for a few rows of a long table."""
    used, codes = np.unique(text.codes, return_inverse=True)
    strings = [text.strings[code] if code >= 0 else "" for code in used.tolist()]
    return Text(codes.astype(np.int32), Strings.of(strings))
