"""Texts that make a slow pattern slow: repeated pieces of what it matches, without the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

SAMPLES = "a1 A[(-_./x\"'Z,:\t\n{}"
PIECES = (" ", "\n", "\t", "1", "a", '"', "\\", "{", "[", "(", "<", ".", "a ", "1 ", "\n ", "::")
REPEATS = (1, 40)
MAX_PIECE, MAX_PAIRED = 400, 12
REPEAT = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def texts(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    """Yield texts of `size` characters: pieces of what the pattern matches, repeated, after each of its beginnings."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else 0)
    found = {piece[:MAX_PIECE] for repeat in REPEATS for piece in _pieces(tree, repeat)}
    for piece in sorted(found | set(PIECES)):
        yield (piece * (size // len(piece) + 1))[:size]
    short = sorted({piece for piece in _pieces(tree, 1) if len(piece) < 60}, key=len)
    for beginning in short[:MAX_PAIRED]:
        for piece in (*short[-MAX_PAIRED:], " ", "1", "a", "\n"):
            yield (beginning + piece * (size // len(piece) + 1))[:size]


def _pieces(tree: Sequence[Any], repeat: int) -> Iterator[str]:
    """Yield the beginnings of what the pattern matches, its words, and what it repeats."""
    for branch in _branches(list(tree)):
        beginning = word = ""
        for item in branch:
            sample = _sample([item], repeat)
            beginning += sample
            word = word + sample if item[0] is codes.LITERAL else ""
            yield from filter(None, (beginning, word, sample))
            if item[0] in REPEAT:
                yield from filter(
                    None, (_sample([inner], repeat) for one in _branches(list(item[1][2])) for inner in one)
                )


def _branches(items: list[Any]) -> Iterator[list[Any]]:
    if len(items) == 1 and items[0][0] is codes.BRANCH:
        for branch in items[0][1][1]:
            yield from _branches(list(branch))
    elif len(items) == 1 and items[0][0] is codes.SUBPATTERN:
        yield from _branches(list(items[0][1][3]))
    else:
        yield items


def _sample(items: Sequence[Any], repeat: int) -> str:
    """Return a text that the items match, with `repeat` of what they repeat."""
    found = ""
    for code, value in items:
        if code is codes.LITERAL:
            found += chr(value)
        elif code is codes.IN:
            found += next((char for char in SAMPLES if _contains(value, char)), "?")
        elif code in (codes.ANY, codes.NOT_LITERAL):
            found += "b"
        elif code is codes.BRANCH:
            found += _sample(value[1][0], repeat)
        elif code is codes.SUBPATTERN:
            found += _sample(value[3], repeat)
        elif code in REPEAT:
            found += (_sample(value[2], repeat) * min(max(int(value[0]), repeat), int(value[1])))[:MAX_PIECE]
    return found


def _contains(members: Sequence[Any], char: str) -> bool:
    found = any(
        (code is codes.LITERAL and value == ord(char))
        or (code is codes.RANGE and value[0] <= ord(char) <= value[1])
        or (code is codes.CATEGORY and _in_category(str(value), char))
        for code, value in members
    )
    return found != any(code is codes.NEGATE for code, _ in members)


def _in_category(category: str, char: str) -> bool:
    inside = char.isdigit() if "DIGIT" in category else char.isspace() if "SPACE" in category else char.isalnum()
    return inside != ("NOT" in category)
