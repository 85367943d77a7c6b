"""Changes of JSON texts: values replaced by unexpected ones, members and items deleted, repeated and moved."""

from __future__ import annotations

import re
from random import Random

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[][{}]')
VALUES = [
    b"null", b"true", b"-1", b"0", b"1", b"2", b"3", b"1.5", b"1e400", b"-1e400", b"1e308", b"NaN", b"Infinity", b"-0",
    b"4611686018427387904", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551616", b"9" * 5000,
    b'""', b'"oom"', b'"alloc"', b'"free_completed"', b'"[memory]"', b'"\\ud800"', b'"\\u0000"', b'"\xff"', b'"x"',
    b'"9e999"',
    b"[]", b"{}", b"[[]]", b"[[[]]]", b'{"a":[1]}', b"[1,2]", b"[1,2,3,4]", b"[null]", b'"' + b"a" * 3000 + b'"',
]  # fmt: skip


MATCHING = {b"[": b"]", b"{": b"}"}
BRACKET = re.compile(rb"[][{}]")


def span_near(data: bytes, at: int) -> tuple[int, int] | None:
    """Return the start and end of the first value or key after a position, without parsing the whole input."""
    token = TOKEN.search(data, at)
    while token is not None and token[0] in b"]}":
        token = TOKEN.search(data, token.end())
    if token is None:
        return None
    if token[0] not in MATCHING:
        return token.span()
    depth = 0
    for bracket in BRACKET.finditer(data, token.start()):
        depth += 1 if bracket[0] in MATCHING else -1
        if not depth:
            return token.start(), bracket.end()
    return token.start(), len(data)


def mutate_json(data: bytes, rng: Random) -> bytes:
    """Change one value, or a key."""
    found = span_near(data, rng.randrange(len(data) + 1)) or span_near(data, 0)
    if found is None:
        return rng.choice(VALUES)
    start, end = found
    value = data[start:end]
    match rng.randrange(8):
        case 0:  # delete it with its comma
            after = end + 1 if data[end : end + 1] == b"," else end
            return data[:start] + data[after:]
        case 1:
            times = rng.choice((1, 2, 10, 1000))
            return data[:end] + (b"," + value) * min(times, 1 + 8_000 // len(value)) + data[end:]
        case 2:
            other = span_near(data, rng.randrange(len(data) + 1)) or found
            return data[:start] + data[other[0] : other[1]] + data[end:]
        case 3:
            depth = rng.choice((1, 2, 50, 2000))
            return data[:start] + b"[" * depth + value + b"]" * depth + data[end:]
        case _:
            return data[:start] + rng.choice(VALUES) + data[end:]
