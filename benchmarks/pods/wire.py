"""Pieces of protobuf messages, joined without being parsed: a message may contain its fields in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

PLANES, HOSTNAMES = 1, 4  # of an XSpace
LINES = 3  # of an XPlane
Bytes = npt.NDArray[np.uint8]


def varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def field(number: int, content: bytes) -> bytes:
    return head(number, len(content)) + content


def head(number: int, length: int) -> bytes:
    """Return what precedes a field of a number of bytes."""
    return varint(number << 3 | 2) + varint(length)


def message(number: int, pieces: Sequence[bytes]) -> list[bytes]:
    """Return a field whose content is in pieces, without copying them."""
    return [head(number, sum(map(len, pieces))), *pieces]


def varints(values: npt.NDArray[np.int64], width: int) -> Bytes:
    """Return a row of `width` bytes per value. All values must need this width: 2**(7 * width - 7) and more."""
    if len(values) and not (1 << 7 * width - 7 <= values.min() and values.max() < 1 << 7 * width):
        raise ValueError(f"not all values are varints of {width} bytes")
    parts = values[:, None] >> 7 * np.arange(width) & 0x7F
    parts[:, :-1] |= 0x80
    return parts.astype(np.uint8)
