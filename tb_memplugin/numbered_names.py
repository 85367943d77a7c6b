"""Names of files that differ in numbers only, as of files that one process saved one after another."""

from __future__ import annotations

import re
from typing import NamedTuple

NUMBER = re.compile(r"(\d{1,18})", re.ASCII)
WORD = re.compile(r"([a-z]*)[^a-z]*\Z", re.ASCII)  # before a number
# Words before the number of a rank: rank3, host_7, cuda-1, w-12.
RANKS = ("rank", "host", "node", "worker", "task", "process", "proc", "pid", "shard", "replica", "slice", "pod")
DEVICES = ("gpu", "cuda", "tpu", "device", "dev", "core", "chip")
LETTERS = {"g", "h", "n", "p", "r", "w"}


class NumberedName(NamedTuple):
    """A name in parts. Names with equal `texts` are those of one series."""

    texts: tuple[str, ...]  # with `*` for the numbers
    numbers: tuple[int, ...]  # that are no rank


def split_name(name: str) -> NumberedName:
    """Split a name at its numbers. The number of a rank is a part of the texts."""
    parts = NUMBER.split(name)
    numbers = []
    for at in range(1, len(parts), 2):
        if not _is_before_rank(parts[at - 1]):
            numbers.append(int(parts[at]))
            parts[at] = "*"
    return NumberedName(tuple(parts), tuple(numbers))


def _is_before_rank(text: str) -> bool:
    found = WORD.search(text.lower())
    word = found[1] if found else ""
    return word in LETTERS or word.endswith(RANKS + DEVICES)
