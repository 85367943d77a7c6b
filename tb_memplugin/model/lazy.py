"""A value computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value computed on the first call, then kept; its inputs are released. Safe to call from any thread."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._lock = Lock()
        self._compute: Callable[[], T] | None = compute
        self._result: list[T] = []

    def __call__(self) -> T:
        with self._lock:
            if self._compute is not None:
                self._result, self._compute = [self._compute()], None
            return self._result[0]

    @property
    def computed(self) -> bool:
        return self._compute is None
