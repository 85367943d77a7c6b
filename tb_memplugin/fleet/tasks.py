"""Tasks that read files, whose results are taken in order of completion, and a line about each file with a problem.

A task reads one local file, or several remote files at a time, because most of that time is waiting for the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from queue import SimpleQueue
from typing import NamedTuple

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.executors import TaskExecutor, is_worker_death
from tb_memplugin.logdir import HostFile, is_remote


def problem_text(error: object) -> str:
    """Describe an error in one line."""
    if isinstance(error, InputError):
        return f"{error.what}: {error.remedy}"
    if isinstance(error, MemoryError):
        return "not enough memory to read it: end other programs, or use fewer --jobs"
    if is_death(error):
        return "a process that read it has died: is there enough memory?"
    return f"cannot be read ({type(error).__name__}: {error}); is it damaged?"


def may_pass(error: object) -> bool:
    """Return whether a file may be readable a moment later, because its content is not the cause of the error."""
    return isinstance(error, (ReadError, MemoryError, OSError, ImportError)) or is_death(error)


def is_death(error: object) -> bool:
    """Return whether processes died while they ran a task: one of this machine, or several of dask's workers."""
    return isinstance(error, BrokenExecutor) or is_worker_death(error)


# A task gets 4 to 32 remote files: enough to read many at a time, and few enough to divide them among processes.
TASKS, MIN_REMOTE, MAX_REMOTE = 8, 4, 32

FilesOfRuns = Sequence[tuple[HostFile, str]]  # with their runs


class FileTask(NamedTuple):
    """A task about files: their summaries, or the programs of one with these fingerprints."""

    files: FilesOfRuns
    programs: frozenset[str] = frozenset()


def batches(files: FilesOfRuns) -> list[FilesOfRuns]:
    """Split files into groups of one task each."""
    remote = [each for each in files if is_remote(each[0].path)]
    size = min(max(len(remote) // TASKS, MIN_REMOTE), MAX_REMOTE)
    groups: list[FilesOfRuns] = [remote[at : at + size] for at in range(0, len(remote), size)]
    return [*groups, *([each] for each in files if not is_remote(each[0].path))]


class Tasks:
    """Tasks whose results are taken in order of their completion; more may be added meanwhile."""

    def __init__(self, executor: TaskExecutor) -> None:
        self._executor = executor
        self._ended: SimpleQueue[tuple[FileTask, Future[object]]] = SimpleQueue()
        self._running = 0

    def submit(self, key: FileTask, function: Callable[..., object], *arguments: object) -> None:
        self._running += 1
        try:
            task: Future[object] = self._executor.submit(function, *arguments)
        except Exception as error:  # the processes have died
            task = Future()
            task.set_exception(error)
        task.add_done_callback(lambda ended: self._ended.put((key, ended)))

    def results(self) -> Iterator[tuple[FileTask, object]]:
        """Yield each task's key with its result, or with its error."""
        while self._running:
            key, task = self._ended.get()
            self._running -= 1
            yield key, task.exception() or task.result()
