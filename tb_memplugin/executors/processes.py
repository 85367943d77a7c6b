"""Processes of this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WaitingCall(NamedTuple):
    """A task that waits."""

    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class LocalProcesses:
    """A process for each core, which starts with the first tasks and runs one task after another.

    A process that dies, such as for lack of memory, fails its own task only, and another one takes its place: each
    belongs to a thread of this process. A pool of several processes would end with all tasks that wait.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or available_cores()
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[WaitingCall | None] = SimpleQueue()
        self._busy: set[threading.Thread] = set()
        self._is_stopped = False

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        if self._is_stopped:
            raise RuntimeError("the processes are stopped")
        future: Future[T] = Future()
        self._waiting.put(WaitingCall(future, function, arguments, named))
        if len(self._threads) < self._workers:
            # The end of the program waits for the tasks of other threads, also for those that have not begun.
            self._threads.append(threading.Thread(target=self._work, name="processes", daemon=True))
            self._threads[-1].start()
        return future

    def stop(self) -> None:
        """Cancel the tasks that wait, and end the processes. Those that run a task end after it."""
        self._is_stopped = True
        with suppress(Empty):
            while True:
                if (call := self._waiting.get_nowait()) is not None:
                    call.future.cancel()
                    call.future.set_running_or_notify_cancel()
        for _ in self._threads:
            self._waiting.put(None)
        # Python 3.11 may print an OSError at its exit if a pool closes meanwhile.
        for thread in self._threads:
            if thread not in self._busy:
                thread.join()

    def _work(self) -> None:
        """Run tasks in one process, and in another one where that dies."""
        pool: ProcessPoolExecutor | None = None
        while (call := self._waiting.get()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            self._busy.add(threading.current_thread())
            try:
                # Forking a process with threads may deadlock in its child.
                pool = pool or ProcessPoolExecutor(1, get_context("spawn"), initializer=ignore_interrupts)
                result = pool.submit(call.function, *call.arguments, **call.named).result()
            except BaseException as error:
                pool = None if isinstance(error, BrokenExecutor) else pool
                self._busy.discard(threading.current_thread())
                call.future.set_exception(error)
            else:
                self._busy.discard(threading.current_thread())
                call.future.set_result(result)
        if pool is not None:
            pool.shutdown()


def ignore_interrupts() -> None:
    """Leave Ctrl+C to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
