"""Changes of texts: numbers made extreme, words and lines deleted, repeated, moved and replaced by known ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

NUMBER = re.compile(rb"\d+(?:\.\d+)?")
WORD = re.compile(rb"[^\s]+")
NUMBERS = [
    b"0", b"-1", b"1e999", b"nan", b"9" * 30, b"9" * 4500, b"9223372036854775808", b"0.0000001", b"1.7.3",
    b"999999999999999999.99", b"\xd9\xa3",
]  # fmt: skip
WORDS = [
    b"", b"\0", b"\xff", b"\r", b"\n", b"\x1b[31m", b"GiB", b"KiB", b"B", b"bytes", b"{", b"}", b"(", b")", b"[",
    b"%", b",", b":", b"=", b"\xe2\x80\x8b", b"a" * 2000,
]  # fmt: skip


def text_mutator(known: Sequence[bytes]) -> Callable[[bytes, Random], bytes]:
    """Return a mutator of texts that also inserts the `known` words of a format."""
    inserted = [*known, *known, *WORDS]

    def mutate(data: bytes, rng: Random) -> bytes:
        kind = rng.randrange(6)
        if kind == 0 and (found := NUMBER.search(data, rng.randrange(len(data) + 1))):
            start, end = found.span()
            return data[:start] + rng.choice(NUMBERS) + data[end:]
        if kind == 1:
            return _lines(data, rng)
        if not (found := WORD.search(data, rng.randrange(len(data) + 1))):
            return data + rng.choice(inserted)
        start, end = found.span()
        match kind:
            case 2:
                times = min(rng.choice((1, 2, 20, 300)), 1 + 20_000 // (end - start))
                return data[:end] + (b" " if rng.random() < 0.5 else b"") + data[start:end] * times + data[end:]
            case 3:
                return data[:start] + data[end:]
            case 4:
                other = (WORD.search(data, rng.randrange(len(data) + 1)) or found).span()
                return data[:start] + data[other[0] : other[1]] + data[end:]
            case _:
                return data[:start] + rng.choice(inserted) + data[start if rng.random() < 0.5 else end :]

    return mutate


def _lines(data: bytes, rng: Random) -> bytes:
    """Delete, repeat or move a line."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines[at:at] = [lines[at]] * rng.choice((1, 2, 50))
        case 2:
            lines[at] = rng.choice(lines)
        case _:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    return b"\n".join(lines)
