"""Executors of tasks: threads and processes of this machine, or the workers of a dask cluster."""

from __future__ import annotations

import os
import signal
import threading
from asyncio import CancelledError
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

import tb_memplugin
from tb_memplugin.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


class TaskExecutor(Protocol):
    """Runs functions somewhere, and can stop."""

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Run a function when there is room. For other processes, the function and its arguments must pickle."""

    def stop(self) -> None:
        """Cancel what waits, and what runs as far as it can be ended: such futures raise CancelledError.

        Later tasks are refused.
        """


class LocalThreads(ThreadPoolExecutor):
    """Threads of this process. A task that runs ends by itself, such as for an event that it was given."""

    def stop(self) -> None:
        self.shutdown(cancel_futures=True)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalProcesses:
    """A process for each core, which starts with the first tasks and runs one task after another.

    A process that dies, such as for lack of memory, fails its own task only, and another one takes its place: each
    belongs to a thread of this process. A pool of several processes would end with all tasks that wait.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or available_cores()
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._busy: set[threading.Thread] = set()
        self._is_stopped = False

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        if self._is_stopped:
            raise RuntimeError("the processes are stopped")
        future: Future[T] = Future()
        self._waiting.put((future, partial(function, *arguments, **named)))
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
                if (task := self._waiting.get_nowait()) is not None:
                    task[0].cancel()
                    task[0].set_running_or_notify_cancel()
        for _ in self._threads:
            self._waiting.put(None)
        # Python 3.11 may print an OSError at its exit if a pool closes meanwhile.
        for thread in self._threads:
            if thread not in self._busy:
                thread.join()

    def _work(self) -> None:
        """Run tasks in one process, and in another one where that dies."""
        pool: ProcessPoolExecutor | None = None
        while (task := self._waiting.get()) is not None:
            future, call = task
            if not future.set_running_or_notify_cancel():
                continue
            self._busy.add(threading.current_thread())
            try:
                # Forking a process with threads may deadlock in its child.
                pool = pool or ProcessPoolExecutor(1, get_context("spawn"), initializer=follow_parent)
                result = pool.submit(call).result()
            except BaseException as error:
                pool = None if isinstance(error, BrokenExecutor) else pool
                self._busy.discard(threading.current_thread())
                future.set_exception(error)
            else:
                self._busy.discard(threading.current_thread())
                future.set_result(result)
        if pool is not None:
            pool.shutdown()


def follow_parent() -> None:
    """Leave Ctrl+C to the process that started this one, and end when it ends, also by SIGKILL."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := parent_process()) is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), name="parent", daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # a task that runs has nobody to tell its result


CONNECT_SECONDS = 10
REMEDY = f"run `pip install tb-memplugin=={tb_memplugin.__version__}` on the workers"


class DaskCluster:
    """A client of a scheduler. A task whose worker dies runs on another one."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError("dask is not installed", "--scheduler", "pip install 'tb-memplugin[dask]'") from None
        try:
            self._client: Any = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            text = "start one with `dask scheduler`, or leave out --scheduler"
            raise InputError(f"No scheduler answers ({type(error).__name__})", address, text) from None
        try:
            self._require_same_version()
        except BaseException:
            self._client.close()
            raise
        self._tasks = WeakSet[Any]()  # results stay in the memory of workers while something refers to a task

    def _require_same_version(self) -> None:
        try:
            versions = self._client.run(version_of_worker)
        except Exception as error:  # as the worker raised it
            raise InputError(f"A worker cannot run tasks ({error})", "--scheduler", REMEDY) from None
        for worker, version in versions.items():
            if version != tb_memplugin.__version__:
                raise InputError(f"A worker has tb_memplugin {version}", worker, REMEDY)

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        task = self._client.submit(function, *arguments, pure=False, **named)
        self._tasks.add(task)
        self._client.loop.add_callback(self._relay, task, future)
        return future

    async def _relay(self, task: Any, future: Future[Any]) -> None:
        """Set a future to the outcome of a task.

        The futures of dask's own executor wait forever if a result is lost with its worker and the task then fails.
        """
        try:
            result = await self._client.gather(task, asynchronous=True)
        except CancelledError:
            future.cancel()
            future.set_running_or_notify_cancel()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def stop(self) -> None:
        self._client.cancel(list(self._tasks))
        self._client.close()


def version_of_worker() -> str:
    """Return the version of this package, on a worker."""
    return tb_memplugin.__version__


def is_worker_death(error: object) -> bool:
    """Return whether a task failed because several workers died while they ran it."""
    return type(error).__name__ == "KilledWorker"


class Cancellation:
    """An event: a task was cancelled, or its client has gone. A worker cannot end a thread by itself."""

    def __init__(self, worker: Any, key: Any) -> None:
        self._worker = worker
        self._key = key

    def is_set(self) -> bool:
        state = self._worker.state.tasks.get(self._key)
        return state is None or state.state in ("cancelled", "released", "forgotten")


def current_task() -> tuple[Cancellation, int]:
    """Return the cancellation of the task that this thread of a worker runs, and the worker's number of threads."""
    from distributed import get_worker

    worker = get_worker()
    return Cancellation(worker, worker.get_current_task()), worker.state.nthreads
