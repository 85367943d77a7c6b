"""Pairs of what was there before and what is there after, for recordings, their facts and their arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def take_pairs(
    before: list[T], after: list[T], key: Callable[[T], Hashable], rank: Callable[[T, T], Any] = lambda old, new: 0
) -> list[tuple[T, T]]:
    """Pair items that have the same key, and take them out of both lists.

    Of several items after, the one with the lowest rank is the partner, or else the first one. Callers try an exact key
    first and then coarser ones, each on the items that are left.
    """
    waiting = defaultdict[Hashable, list[T]](list)
    for new in after:
        waiting[key(new)].append(new)
    pairs = []
    for old in list(before):
        if same := waiting[key(old)]:
            pairs.append((old, min(same, key=partial(rank, old))))
            before.remove(old)
            for items in (same, after):
                items.remove(pairs[-1][1])
    return pairs
