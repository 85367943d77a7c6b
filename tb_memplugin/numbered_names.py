"""Names that contain numbers: their natural order, memory2 before memory10, and files that differ in numbers only."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

NUMBER = re.compile(r"([0-9]{1,18})")
MAX_CACHED = 20_000  # names, which hosts repeat in each run
MAX_NUMBERS = 64  # that are compared by value: a name from a file may have millions


@lru_cache(MAX_CACHED)
def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key under which the numbers in names compare by value."""
    return tuple((int(part), "") if NUMBER.fullmatch(part) else (-1, part) for part in NUMBER.split(name, MAX_NUMBERS))


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
        found = WORD.search(parts[at - 1].lower())
        word = found[1] if found else ""
        if word not in LETTERS and not word.endswith(RANKS + DEVICES):
            numbers.append(int(parts[at]))
            parts[at] = "*"
    return NumberedName(tuple(parts), tuple(numbers))


def counted_host(host: str, is_snapshot: bool) -> str | tuple[str, ...]:
    """Return a key by which hosts are counted. Snapshots whose names differ in numbers that are no rank count once."""
    return split_name(host).texts if is_snapshot else host
