"""Two compiled loops over one file at once, as they release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tb_memplugin.readers.common.budget import ReadBudget

First = TypeVar("First")
Second = TypeVar("Second")


class BudgetShare:
    """Half of what a budget has left, for one of two loops."""

    def __init__(self, budget: ReadBudget) -> None:
        self._budget = budget
        self.left = budget.left // 2

    def charge(self, nbytes: int) -> None:
        """Count bytes that are about to be allocated. InputError beyond this half."""
        if nbytes > self.left:
            raise self._budget.exceeded(self._budget.used + nbytes)
        self.left -= nbytes
        self._budget.charge(nbytes)


def at_once(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Return both results; `second` runs in a thread, which has ended when this returns or raises."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(second)
        return first(), other.result()
