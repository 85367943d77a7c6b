"""Changes of bytes that know nothing of a format: flips, cuts, repeats, splices and extreme integers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

Mutator = Callable[[bytes, Random], bytes]

MAX_INPUT = 48 << 10  # of ordinary inputs, so that thousands are tried each second
MAX_LONG_INPUT = 1 << 20  # of the rare long ones, which show time and memory that grow faster than the file
LONG_CHANCE = 0.001

NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63)
EXTREMES = [
    *(number.to_bytes(width, order) for width in (1, 2, 4, 8) for number in NUMBERS for order in ("little", "big")
      if number < 1 << 8 * width),
    *(b"\xff" * width for width in (1, 2, 4, 8, 16)),
    *(struct.pack("<d", number) for number in (float("nan"), float("inf"), -0.0, 1e308, 5e-324)),
]  # fmt: skip


def span(data: bytes, rng: Random, most: int = 64) -> tuple[int, int]:
    """Return the start and end of a random piece, mostly short."""
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randrange(1, most + 1))


def flip_bit(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data))
    return b"%b%c%b" % (data[:at], data[at] ^ (1 << rng.randrange(8)), data[at + 1 :])


def set_byte(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data))
    return b"%b%c%b" % (data[:at], rng.randrange(256), data[at + 1 :])


def cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data))]


def delete(data: bytes, rng: Random) -> bytes:
    start, end = span(data, rng)
    return data[:start] + data[end:]


def repeat(data: bytes, rng: Random) -> bytes:
    start, end = span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 3, 8, 64)) + data[end:]


def move(data: bytes, rng: Random) -> bytes:
    start, end = span(data, rng, 256)
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[start:end] + data[at:]


def write_extreme(data: bytes, rng: Random) -> bytes:
    at, number = rng.randrange(len(data)), rng.choice(EXTREMES)
    return data[:at] + number + data[at + (len(number) if rng.random() < 0.7 else 0) :]


def extend(data: bytes, rng: Random) -> bytes:
    """Repeat one short piece until the input is long."""
    start, end = span(data, rng, rng.choice((2, 8, 64, 1024)))
    piece = data[start:end] or b"\0"
    length = rng.choice((MAX_LONG_INPUT // 16, MAX_LONG_INPUT // 4, MAX_LONG_INPUT))
    return data[:start] + piece * (length // len(piece)) + data[end:]


PLAIN: Sequence[Mutator] = (flip_bit, set_byte, set_byte, cut, delete, repeat, move, write_extreme, write_extreme)


def any_of(mutators: Sequence[Mutator]) -> Mutator:
    """Return a mutator that applies one of `mutators`."""

    def one(data: bytes, rng: Random) -> bytes:
        return rng.choice(mutators)(data or b"\0", rng)

    return one


def mixed(aware: Mutator, seeds: Sequence[bytes], aware_share: float = 0.7) -> Mutator:
    """Return a mutator that applies one to eight changes, most of them by `aware`, which knows the format."""
    plain = any_of(PLAIN)

    def mutate(data: bytes, rng: Random) -> bytes:
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4, 8))):
            data = (aware if rng.random() < aware_share else plain)(data or b"\0", rng)
        if rng.random() < 0.03:  # the head of one file, and the tail of another
            other = rng.choice(seeds)
            data = data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other)) :]
        if rng.random() < LONG_CHANCE:
            return extend(data or b"\0", rng)[:MAX_LONG_INPUT]
        return data[:MAX_INPUT]

    return mutate
