"""Threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class LocalThreads:
    """Threads, which each call `begin` with an event that `stop` sets, and with the number of threads."""

    def __init__(self, workers: int, name: str, begin: Callable[[threading.Event, int], None]) -> None:
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(workers, name, initializer=begin, initargs=(self._stopped, workers))

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        return self._pool.submit(function, *arguments, **named)

    def stop(self) -> None:
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)
