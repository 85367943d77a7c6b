"""The order in which people sort names that contain numbers: memory2 before memory10."""

from __future__ import annotations

import re
from functools import lru_cache

NUMBER = re.compile(r"([0-9]{1,18})")
MAX_CACHED = 20_000  # names, which hosts repeat in each run

NaturalKey = tuple[tuple[int, str], ...]


@lru_cache(MAX_CACHED)
def natural_key(name: str) -> NaturalKey:
    """Return a sort key under which the numbers in names compare by value."""
    return tuple((int(part), "") if NUMBER.fullmatch(part) else (-1, part) for part in NUMBER.split(name))
