"""Workers of a dask.distributed cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

import tb_memplugin
from tb_memplugin.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")
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
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            text = "start one with `dask scheduler`, or leave out --scheduler"
            raise InputError(f"No scheduler answers ({type(error).__name__})", address, text) from None
        try:
            self._require_same_version()
        except BaseException:
            self._client.close()
            raise
        self._pool = self._client.get_executor(pure=False)

    def _require_same_version(self) -> None:
        try:
            versions = self._client.run(version_of_worker)
        except Exception as error:  # as the worker raised it
            raise InputError(f"A worker cannot run tasks ({error})", "--scheduler", REMEDY) from None
        for worker, version in versions.items():
            if version != tb_memplugin.__version__:
                raise InputError(f"A worker has tb_memplugin {version}", worker, REMEDY)

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        future: Future[T] = self._pool.submit(function, *arguments, **named)
        return future

    def stop(self) -> None:
        self._pool.shutdown(wait=False)  # which cancels
        self._client.close()


def version_of_worker() -> str:
    """Return the version of this package, on a worker."""
    return tb_memplugin.__version__


def is_worker_death(error: BaseException) -> bool:
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
