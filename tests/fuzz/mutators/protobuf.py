"""Changes of protocol buffers in their wire format: fields deleted, repeated, renumbered, nested and given extremes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import NamedTuple

VARINT, FIXED64, SPAN, FIXED32 = 0, 1, 2, 5
EXTREMES = (0, 1, 2, 3, 127, 128, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
TEXTS = (
    b"", b"\xff\xfe", b"\0", b"tuple", b"while", b"call", b"parameter", b"fusion", b"%s", b"<b>", b"\x1b[2J",
    b"a" * 3000,
)  # fmt: skip
DESCEND = 0.8  # probability of changing a field inside a message rather than the message


class Field(NamedTuple):
    """A field on the wire: where its tag, its content and its end are."""

    start: int
    content: int
    end: int
    number: int
    wire: int


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def tagged(number: int, wire: int, content: bytes) -> bytes:
    """Return a field with its tag, and a span with its length."""
    return varint(number << 3 | wire) + (varint(len(content)) if wire == SPAN else b"") + content


@lru_cache(maxsize=4096)
def fields(data: bytes) -> tuple[Field, ...] | None:
    """Return the fields of a message, None where the bytes are no message."""
    found, at, size = [], 0, len(data)
    try:
        while at < size:
            start = at
            tag, at = _varint_at(data, at)
            wire, content = tag & 7, at
            if wire == VARINT:
                _, at = _varint_at(data, at)
            elif wire == SPAN:
                length, content = _varint_at(data, at)
                at = content + length
            elif wire in (FIXED64, FIXED32):
                at += 8 if wire == FIXED64 else 4
            else:
                return None
            if at > size or tag < 8:
                return None
            found.append(Field(start, content, at, tag >> 3, wire))
    except IndexError:
        return None
    return tuple(found)


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
        if shift > 63:
            raise IndexError


def mutate_message(data: bytes, rng: Random) -> bytes:
    """Change one field, at any depth; the lengths around it are corrected."""
    found = fields(data)
    if not found:
        return data + tagged(rng.randrange(1, 20), VARINT, varint(rng.choice(EXTREMES)))
    # Long lists of equal fields would hide the few others.
    number = rng.choice(list({field.number for field in found})) if rng.random() < 0.5 else None
    field = rng.choice([one for one in found if number in (None, one.number)])
    content = data[field.content : field.end]
    if field.wire == SPAN and content and rng.random() < DESCEND and fields(content) is not None:
        changed = tagged(field.number, SPAN, mutate_message(content, rng))
    else:
        changed = rng.choice(CHANGES)(field, data[field.start : field.end], content, rng)
    return data[: field.start] + changed + data[field.end :]


Change = Callable[[Field, bytes, bytes, Random], bytes]


def _delete(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    return b""


def _repeat(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    times = rng.choice((2, 2, 3, 10, 100, 5000))
    return whole * (min(times, 1 + 20_000 // len(whole)))


def _renumber(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    number = rng.choice((field.number + 1, max(field.number - 1, 1), rng.randrange(1, 30), 2**28))
    return tagged(number, field.wire, content)


def _value(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    if field.wire == VARINT:
        number = rng.choice(EXTREMES) if rng.random() < 0.6 else rng.randrange(300)
        return tagged(field.number, VARINT, varint(number))
    if field.wire == SPAN:
        if content and rng.random() < 0.3:  # packed numbers, or a text
            at = rng.randrange(len(content))
            changed = content[:at] + varint(rng.choice(EXTREMES)) + content[at + 1 :]
        else:
            changed = rng.choice(TEXTS)
        return tagged(field.number, SPAN, changed)
    width = field.end - field.content
    return tagged(field.number, field.wire, rng.choice((bytes(width), b"\xff" * width, rng.randbytes(width))))


def _wire(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    """Write the field as another wire type."""
    if field.wire == SPAN:
        return tagged(field.number, VARINT, varint(rng.choice(EXTREMES)))
    return tagged(field.number, SPAN, content * rng.choice((0, 1, 3)))


def _length(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    """Claim another length, which shifts all that follows."""
    claimed = rng.choice((0, 1, len(content) + 1, max(len(content) - 1, 0), 2**31, 2**63 - 1, 2**64 - 1))
    return varint(field.number << 3 | SPAN) + varint(claimed) + content


def _nest(field: Field, whole: bytes, content: bytes, rng: Random) -> bytes:
    """Put the field into itself."""
    for _ in range(rng.choice((1, 2, 10, 150))):
        whole = tagged(field.number, SPAN, whole)
    return whole


CHANGES: tuple[Change, ...] = (_delete, _repeat, _renumber, _value, _value, _value, _value, _wire, _length, _nest)
