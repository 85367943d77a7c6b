"""A value computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value computed on the first call, then kept; its inputs are released. Safe to call from any thread."""

    def __init__(self, compute: Callable[[], T], input_nbytes: int = 0) -> None:
        """`input_nbytes`: bytes that `compute` keeps in memory."""
        self._lock = Lock()
        self._compute: Callable[[], T] | None = compute
        self._result: list[T] = []
        self._input_nbytes = input_nbytes

    def __call__(self) -> T:
        with self._lock:
            if self._compute is not None:
                self._result, self._compute = [self._compute()], None
            return self._result[0]

    @property
    def nbytes(self) -> int:
        """Return about how many bytes are in memory: those of the inputs at first, then those of the value."""
        if self._compute is not None:
            return self._input_nbytes
        return sum(getattr(result, "nbytes", 0) for result in self._result)
