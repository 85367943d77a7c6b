"""Compiling the candidates of a sweep into the runs of a logdir, until it is done or stopped.

Candidates are compiled by processes of this machine, each started by a thread, or by workers of a dask cluster.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from tb_memplugin.errors import InputError
from tb_memplugin.executors import DaskCluster, LocalThreads, TaskExecutor, current_task, is_worker_death
from tb_memplugin.fit.compile_task import Compiled, CompileTask, Limits
from tb_memplugin.fit.compiling.compiling import IN_CHILD, compile_task
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.fit.process import Stop, with_share
from tb_memplugin.fit.step.sources import collect_sources
from tb_memplugin.fit.step.step_file import FoundStep
from tb_memplugin.fit.sweep import Sweep, run_name, write_program
from tb_memplugin.model.fit import Candidate, Knobs, Outcome
from tb_memplugin.targets import Target, targets_to_try

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Up to a thousand rows each check for a stop this often; 0.2 s is soon enough after Ctrl+C.
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class CompileOptions:
    """The place and the limits of compilations: `jobs` is the number of compilations at a time."""

    limits: Limits = field(default_factory=Limits)
    jobs: int | None = None  # None: half of the cores
    scheduler: str | None = None  # the address of a dask cluster, which compiles in place of this machine
    uses_cache: bool = True


def compile_on_worker(task: CompileTask) -> Compiled:
    """Compile a candidate in a thread of a worker."""
    cancellation, threads = current_task()
    return compile_task(replace(task, limits=with_share(task.limits, threads)), cancellation)


@dataclass(frozen=True)
class Compiler:
    """A function that compiles a candidate, waits, and returns its outcome. Callable from any thread."""

    executor: TaskExecutor
    compile: Callable[[CompileTask], Compiled]
    task_of: Callable[..., CompileTask]  # called with a candidate, and whether to compile it to the end
    logdir: Path
    stop: Stop

    def __call__(self, candidate: Candidate, to_end: bool = False) -> Outcome:
        """Compile a candidate, write its program to its run, and return the outcome. CancelledError once stopped."""
        try:
            task = self.task_of(candidate, to_end=to_end)
            compiled = self._wait_for(self.executor.submit(self.compile, task))
        except Exception as error:
            if self.stop.is_set():
                raise CancelledError from None
            if not is_worker_death(error):
                raise
            text = "Several workers died while they compiled this: see their logs, or give them more memory"
            return Outcome(candidate, error=text)
        write_program(compiled.files, self.logdir / run_name(candidate))
        return compiled.outcome

    def _wait_for(self, future: Future[Compiled]) -> Compiled:
        while not self.stop.is_set():
            if wait([future], POLL_SECONDS).done:
                return future.result()
        raise CancelledError


@contextmanager
def open_compiler(logdir: Path, step: FoundStep, stop: Stop, options: CompileOptions) -> Iterator[Compiler]:
    """Yield a compiler of a step. Once `stop` is set, its compilations end and its calls raise CancelledError."""
    jobs = options.jobs or max((os.cpu_count() or 1) // 2, 1)  # XLA uses about two cores for each
    executor: TaskExecutor
    compile_there: Callable[[CompileTask], Compiled]
    if options.scheduler:
        sources = collect_sources(step.text, step.script) if not step.pickled else None
        limits, compile_there = options.limits, compile_on_worker
        executor = DaskCluster(options.scheduler)
    else:
        sources = None
        limits, compile_there = with_share(options.limits, jobs), partial(compile_task, stop=stop)
        executor = LocalThreads(jobs, "fit")
    task_of = partial(
        CompileTask,
        limits=limits,
        uses_cache=options.uses_cache,
        sources=sources,
        pickled=step.pickled,
        of_torch=step.of_torch,
        script=step.script,
    )
    try:
        yield Compiler(executor, compile_there, task_of, logdir, stop)
    finally:
        executor.stop()


@contextmanager
def open_sweep(
    step: FoundStep,
    on: Sequence[str],
    varied: Sequence[Varied],
    fixed: Knobs,
    logdir: Path,
    stop: Stop,
    options: CompileOptions,
    budget: int | None = None,
    proves: bool | None = None,
) -> Iterator[Sweep]:
    """Yield the sweep of a step on targets, such as `v5e:4x4`, or `v5e` for slices from the smallest up.

    InputError where targets, knobs and options contradict each other.
    """
    if os.environ.get(IN_CHILD):
        text = 'put the call below `if __name__ == "__main__":`'
        raise InputError("fit is called while the step's file is imported", step.text, text)
    if step.script is not None:
        step.script.require_places(varied, fixed)
    if not on:
        raise InputError("No target", "--on", "name one, as in --on v5e:4x4, --on h100:8 or --on cpu:8")
    targets = [_gpus(text) if step.of_torch else targets_to_try(text) for text in on]
    logdir.mkdir(parents=True, exist_ok=True)  # before the first candidate, so that all of them find the same folders
    with open_compiler(logdir, step, stop, options) as compiler:
        yield Sweep(step.text, targets, fixed, varied, compiler, logdir, budget, proves, defaults=step.defaults)


def _gpus(text: str) -> list[Target]:
    """Return the target of a step of PyTorch: one GPU if the text names no number."""
    target = targets_to_try(text)[0]
    if target.platform != "cuda":
        raise InputError("Steps of PyTorch are traced for GPUs", text, "write --on h100 or --on h100:8")
    return [replace(target, of_torch=True)]


@contextmanager
def set_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set an event at the first Ctrl+C or SIGTERM. The next one acts as it did before, such as KeyboardInterrupt.

    Python handles signals in the main thread only, so this has no effect in other threads.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS} if is_main else {}

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        stop.set()  # takes the event's lock, so the main thread may check the event, but must not wait for it

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
