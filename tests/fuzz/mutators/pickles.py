"""Changes of pickles: opcodes deleted, repeated, moved and replaced, numbers made extreme, values shared many times."""

from __future__ import annotations

import pickletools
from functools import lru_cache
from random import Random

SNIPPETS = [
    b"N", b"\x88", b"]", b"}", b")", b"(", b"0", b"1", b"2", b"a", b"e", b"s", b"u", b"t", b"l", b"d",
    b"K\x00", b"K\xff", b"M\xff\xff", b"J\xff\xff\xff\xff", b"J\x00\x00\x00\x80",
    b"\x8a\x08" + b"\xff" * 7 + b"\x7f", b"\x8a\x08" + bytes(7) + b"\x80", b"\x8a\x20" + b"\x7f" * 32,
    b"G\x7f\xf0" + bytes(6), b"G\x7f\xf8" + bytes(6), b"G\xff\xef" + b"\xff" * 6,
    b"I999999999999999999999999\n", b"L-1L\n", b"Fnan\n", b"S'x'\n", b"Vx\\ud800\n",
    b"\x8c\x00", b"\x8c\x01\xff", b"X\xff\xff\xff\xff", b"\x8d" + b"\xff" * 8, b"T\xff\xff\xff\x7f", b"U\x03abc",
    b"C\x01\x00",
    b"h\x00", b"h\x05", b"j\xff\xff\xff\xff", b"j\xff\xff\xff\x7f", b"q\x00", b"r\xff\xff\xff\x7f", b"\x94", b"p0\n",
    b"g0\n",
    b"cos\nsystem\n", b"R", b"\x81", b"b", b"\x93", b"\x95" + b"\xff" * 8, b"\x80\x05", b"P1\n", b"Q", b"\x82\x01",
    b"\x97", b"\x98",
    b"\x8c\x04size", b"\x8c\x04addr", b"\x8c\x06frames", b"\x8c\x06action", b"\x8c\x05alloc", b".",
]  # fmt: skip


# Of each opcode: the bytes of its argument, or the code of pickletools for a length that the file contains.
ARGUMENTS = {ord(opcode.code): opcode.arg.n if opcode.arg else 0 for opcode in pickletools.opcodes}
LENGTH_BYTES = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}


@lru_cache(maxsize=1024)
def opcodes(data: bytes) -> tuple[int, ...]:
    """Return where each opcode starts, as far as they can be read."""
    found, at, size = [], 0, len(data)
    while at < size and (length := ARGUMENTS.get(data[at])) is not None:
        found.append(at)
        at += 1
        if length >= 0:
            at += length
        elif length == pickletools.UP_TO_NEWLINE:
            at = data.find(b"\n", at) + 1 or size
        else:
            wide = LENGTH_BYTES[length]
            at += wide + int.from_bytes(data[at : at + wide], "little")
    return tuple(found)


def mutate_pickle(data: bytes, rng: Random) -> bytes:
    """Change one opcode or a run of them."""
    starts = opcodes(data)
    if len(starts) < 3:
        return data + rng.choice(SNIPPETS)
    first = rng.randrange(len(starts) - 1)
    last = min(first + rng.choice((1, 1, 1, 2, 5, 20)), len(starts) - 1)
    start, end = starts[first], starts[last]
    at = starts[rng.randrange(len(starts))]
    match rng.randrange(8):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:end] + data[start:end] * rng.choice((1, 2, 10, 100)) + data[end:]
        case 2:
            return data[:at] + data[start:end] + data[at:]
        case 3 | 4:
            return data[:start] + rng.choice(SNIPPETS) + data[end:]
        case 5 | 6:
            return data[:start] + rng.choice(SNIPPETS) + data[start:]
        case _:
            return data[:start] + shared(rng) + data[end:]


def shared(rng: Random) -> bytes:
    """Return a value that contains a remembered one many times, so that it is far larger than its file."""
    key = b"h%c" % rng.randrange(256)
    for _ in range(rng.choice((1, 1, 2, 4))):
        times = min(rng.choice((3, 30, 300)), 1 + 4000 // len(key))
        key = b"](" + key * times + b"e" + (b"\x94" if rng.random() < 0.5 else b"")
    return key
