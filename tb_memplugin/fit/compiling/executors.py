"""Executors of compilations: threads that each run a process, or workers of a dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable

from tb_memplugin.executors.dask_cluster import DaskCluster, current_task
from tb_memplugin.executors.executor import TaskExecutor
from tb_memplugin.executors.threads import LocalThreads
from tb_memplugin.fit.compile_task import Compiled, CompileTask
from tb_memplugin.fit.compiling.compiling import compile_task
from tb_memplugin.fit.processes.watching import work_in_thread

CompileFunction = Callable[[CompileTask], Compiled]


def default_jobs() -> int:
    """Return the number of compilations to run at a time: XLA uses about two cores for each."""
    return max((os.cpu_count() or 1) // 2, 1)


def local_threads(jobs: int | None = None) -> LocalThreads:
    """Return threads that each run one compilation at a time, in a process of its own."""
    return LocalThreads(jobs or default_jobs(), "fit", work_in_thread)


def open_executor(scheduler: str | None, jobs: int | None) -> tuple[TaskExecutor, CompileFunction]:
    """Return the executor of a scheduler's workers, else of threads, and the function that compiles there."""
    return (DaskCluster(scheduler), compile_on_worker) if scheduler else (local_threads(jobs), compile_task)


def compile_on_worker(task: CompileTask) -> Compiled:
    """Compile a candidate in a thread of a worker."""
    work_in_thread(*current_task())
    return compile_task(task)
