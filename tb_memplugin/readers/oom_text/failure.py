"""One out_of_memory as a text tells it, before it becomes a Recording."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from itertools import zip_longest

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.rows import Rows
from tb_memplugin.sizes import printed_size

# A job that retries may log thousands; the last ones are those that ended it.
MAX_FAILURES = 50
BLOCK_CHARS = 1 << 21  # longer than any error of one message; a dump of an allocator's chunks knows its own end


@dataclass(frozen=True, slots=True)
class Failure:
    """What the text from `at` on says. Sizes in bytes, None where it does not say.

    `used` is all that was in use, or when compiling all that the program needs; the rows may explain less of it.
    `cut`: the text ends inside its list.
    """

    at: int
    tool: str  # xla, tpu, bfc, torch, onnxruntime, host: two of one tool and size are one failure told twice
    memory: str
    out_of_memory: OutOfMemory
    rows: Rows = field(default_factory=Rows)
    used: int | None = None
    lifetime_peak: int | None = None
    program: str = ""
    cut: bool = False
    caveats: tuple[Caveat, ...] = ()


def last(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The last matches, in order."""
    return list(deque(pattern.finditer(text), MAX_FAILURES))


def blocks(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """The last matches, each with the text from its end to the next."""
    return pieces(last(pattern, text), text)


def pieces(matches: list[re.Match[str]], text: str) -> list[tuple[re.Match[str], str]]:
    ends = [min(following.start() if following else len(text), match.end() + BLOCK_CHARS)
            for match, following in zip_longest(matches, matches[1:])]  # fmt: skip
    return [(match, text[match.end() : end]) for match, end in zip(matches, ends, strict=True)]


def size_of(match: re.Match[str] | None, group: int | str = 1) -> int | None:
    """The size in a group of a match; None where either is missing."""
    text = match[group] if match else None
    return printed_size(text) if text else None
