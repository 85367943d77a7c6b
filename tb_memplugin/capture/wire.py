"""The part of protocol buffers' wire format that capturing needs, so that training scripts need not import protobuf.

A message is a sequence of fields: a key, then a number, or a length and that many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator


def varint(value: int) -> bytes:
    """Encode a number in groups of seven bits, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """Encode a field with a number."""
    return varint(field << 3) + varint(value)


def message(field: int, value: bytes) -> bytes:
    """Encode a field with bytes, a string or a message."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield (number, value) of each field of a message."""
    position = 0

    def read_varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        key = read_varint()
        if key & 7 == 0:
            yield key >> 3, read_varint()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or read_varint()
            yield key >> 3, data[position : position + length]
            position += length
