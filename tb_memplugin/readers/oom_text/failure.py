"""An out-of-memory failure as parsed from a text, before it becomes a Recording."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from itertools import zip_longest

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.rows import Rows
from tb_memplugin.sizes import printed_size

# A retrying job may log thousands of failures. The last ones ended it.
MAX_FAILURES = 50
BLOCK_CHARS = 1 << 21  # exceeds any message; an allocator's dump has its own end


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that the text describes from offset `at`. Sizes in bytes, None where the text lacks them.

    `used`: bytes in use or, when compiling, needed by the program; the rows may explain less.
    `cut`: the text ends inside its list of buffers.
    """

    at: int
    tool: str  # xla, tpu, bfc, torch, onnxruntime, host: equal tool and size mean one failure reported twice
    memory: str
    out_of_memory: OutOfMemory
    rows: Rows = field(default_factory=Rows)
    used: int | None = None
    lifetime_peak: int | None = None
    program: str = ""
    cut: bool = False
    caveats: tuple[Caveat, ...] = ()


def last_matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the last MAX_FAILURES matches, in order."""
    return list(deque(pattern.finditer(text), MAX_FAILURES))


def blocks(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Return the last matches, each with the text up to the next."""
    return split_at(last_matches(pattern, text), text)


def split_at(matches: list[re.Match[str]], text: str) -> list[tuple[re.Match[str], str]]:
    """Return each match with the text from its end to the next match."""
    ends = [min(following.start() if following else len(text), match.end() + BLOCK_CHARS)
            for match, following in zip_longest(matches, matches[1:])]  # fmt: skip
    return [(match, text[match.end() : end]) for match, end in zip(matches, ends, strict=True)]


def size_of(match: re.Match[str] | None, group: int | str = 1) -> int | None:
    """Return the bytes in a group of a match; None where either is missing."""
    text = match[group] if match else None
    return printed_size(text) if text else None
