"""Reading expensive figures less often."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
SHARE = 0.0001  # of one core, which the calls of one function may take


class Paced(Generic[T]):
    """A function whose last result is repeated until its next call costs at most SHARE of a core."""

    def __init__(self, read: Callable[[], T], seconds: float = 0.0) -> None:
        """`seconds`: between two calls, at least."""
        self._read, self._seconds = read, seconds
        self._next = float("-inf")
        self._last: T

    def __call__(self) -> T:
        now = time.monotonic()
        if now >= self._next:
            began = time.thread_time()
            try:
                self._last = self._read()
            finally:
                self._next = now + max(self._seconds, (time.thread_time() - began) / SHARE)
        return self._last
