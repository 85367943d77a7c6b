"""Runners of compilations: threads that each run a process, or workers of a dask cluster."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Protocol

from tb_memplugin.fit.compile_task import Compiled, CompileTask
from tb_memplugin.fit.compiling.compiling import compile_task
from tb_memplugin.fit.processes.watching import work_in_thread


def default_jobs() -> int:
    """Return the number of compilations to run at a time: XLA uses about two cores for each."""
    return max((os.cpu_count() or 1) // 2, 1)


class TaskRunner(Protocol):
    """A runner of tasks, which can stop."""

    def submit(self, task: CompileTask) -> Future[Compiled]:
        """Run a task when there is room."""

    def stop(self) -> None:
        """End what runs and cancel what waits: their futures raise CancelledError. Later tasks are refused."""


class LocalRunner:
    """Threads of this process, which each run a process."""

    def __init__(self, jobs: int | None = None) -> None:
        self._stopped = threading.Event()
        jobs = jobs or default_jobs()
        self._pool: Executor = ThreadPoolExecutor(
            jobs, "fit", initializer=work_in_thread, initargs=(self._stopped, jobs)
        )

    def submit(self, task: CompileTask) -> Future[Compiled]:
        return self._pool.submit(compile_task, task)

    def stop(self) -> None:
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)
