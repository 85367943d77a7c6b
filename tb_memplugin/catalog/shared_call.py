"""A slow call that concurrent callers share, without getting a result from before they asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SharedCall(Generic[Result]):
    """Calls a function once for all who asked before the call began. Those who ask during a call share the next."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._running = threading.Lock()
        self._begun = 0  # number of calls
        self._ended: tuple[int, Result] | None = None  # the last call that succeeded, and its result

    def __call__(self) -> Result:
        wanted = self._begun + 1
        with self._running:
            if self._ended is not None and self._ended[0] >= wanted:
                return self._ended[1]
            self._begun += 1
            number = self._begun
            result = self._function()
            self._ended = (number, result)
            return result
