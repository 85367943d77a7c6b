"""Protocol buffers' wire format, as far as a training script needs it to add a few fields: no protobuf is loaded.

A message is fields, each a key, and a number or a length and that many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(field << 3) + varint(value)


def message(field: int, value: bytes) -> bytes:
    """A field that is bytes, a text or a message."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of each field."""
    at = 0

    def read() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = read()
        if key & 7 == 0:
            yield key >> 3, read()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or read()
            yield key >> 3, data[at : at + length]
            at += length
