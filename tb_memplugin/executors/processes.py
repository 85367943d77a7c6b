"""Processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalProcesses:
    """A process for each core, which starts with the first task and runs one task after another."""

    def __init__(self, workers: int | None = None) -> None:
        # Forking a process with threads may deadlock in its child.
        self._pool = ProcessPoolExecutor(workers or available_cores(), get_context("spawn"))

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        return self._pool.submit(function, *arguments, **named)

    def stop(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
