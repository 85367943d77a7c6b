"""Tasks about files, whose results are taken as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple

from tb_memplugin.executors.executor import TaskExecutor
from tb_memplugin.logdir import HostFile


class FileTask(NamedTuple):
    """A task about a file: its summary, or its programs with these fingerprints."""

    file: HostFile
    run: str
    programs: frozenset[str] = frozenset()


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
