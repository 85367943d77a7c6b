"""Compiling candidates into the runs of a logdir, until somebody stops it.

Threads of this machine each run a process, or workers of a dask cluster compile.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tb_memplugin.executors import DaskCluster, LocalThreads, TaskExecutor, current_task, is_worker_death
from tb_memplugin.fit.compile_task import Compiled, CompileTask, Limits, Sources
from tb_memplugin.fit.compiling.compiling import compile_task
from tb_memplugin.fit.process import work_in_thread
from tb_memplugin.fit.step.sources import collect_sources
from tb_memplugin.fit.sweep import run_name, write_program
from tb_memplugin.model.fit import Candidate, Outcome

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


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Compiler:
    """A function from a candidate to its outcome, which waits. Callable from any thread."""

    executor: TaskExecutor
    compile: CompileFunction
    logdir: Path
    limits: Limits = field(default_factory=Limits)
    uses_cache: bool = True
    sources: Sources | None = None
    pickled: bytes = b""
    stopped: bool = False
    stopped_by_signal: bool = False

    def __call__(self, candidate: Candidate, to_end: bool = False) -> Outcome:
        """Compile a candidate, and write its program to its run. CancelledError once stopped."""
        if self.stopped:
            raise CancelledError
        try:
            task = CompileTask(candidate, self.limits, self.uses_cache, self.sources, self.pickled, to_end)
            compiled = self.executor.submit(self.compile, task).result()
        except Exception as error:
            if self.stopped:
                raise CancelledError from None
            if not is_worker_death(error):
                raise
            text = "Several workers died while they compiled this: see their logs, or give them more memory"
            return Outcome(candidate, error=text)
        write_program(compiled.files, self.logdir / run_name(candidate))
        return compiled.outcome

    def stop(self) -> None:
        """End all compilations."""
        self.stopped = True
        self.executor.stop()


@contextmanager
def open_compiler(
    logdir: Path,
    step: str,
    limits: Limits | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    uses_cache: bool = True,
    pickled: bytes = b"",
) -> Iterator[Compiler]:
    """Yield a compiler. Ctrl+C stops it, so that calls raise CancelledError; a second Ctrl+C is KeyboardInterrupt."""
    sources = collect_sources(step) if scheduler and not pickled else None
    executor, compile_there = open_executor(scheduler, jobs)
    compiler = Compiler(executor, compile_there, logdir, limits or Limits(), uses_cache, sources, pickled)
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS} if is_main else {}

    def stop(number: int, frame: FrameType | None) -> None:
        restore()
        compiler.stopped_by_signal = True
        threading.Thread(target=compiler.stop).start()  # a handler must not wait for locks

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, stop)
    try:
        yield compiler
    finally:
        restore()
        compiler.stop()
