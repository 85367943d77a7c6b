"""Compilations on the workers of a dask.distributed cluster."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import tb_memplugin
from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import Compiled, CompileTask
from tb_memplugin.fit.compiling.compiling import compile_task
from tb_memplugin.fit.processes.watching import work_in_thread

CONNECT_SECONDS = 10
REMEDY = f"run `pip install tb-memplugin=={tb_memplugin.__version__}` on the workers"


class DaskRunner:
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

    def submit(self, task: CompileTask) -> Future[Compiled]:
        future: Future[Compiled] = self._pool.submit(compile_on_worker, task)
        return future

    def stop(self) -> None:
        self._pool.shutdown(wait=False)  # which cancels
        self._client.close()


def version_of_worker() -> str:
    """Return the version of this package, on a worker."""
    return tb_memplugin.__version__


def compile_on_worker(task: CompileTask) -> Compiled:
    """Compile a candidate in a thread of a worker."""
    from distributed import get_worker

    worker = get_worker()
    work_in_thread(Cancellation(worker, worker.get_current_task()), worker.state.nthreads)
    return compile_task(task)


class Cancellation:
    """An event: a task was cancelled, or its client has gone. A worker cannot end a thread by itself."""

    def __init__(self, worker: Any, key: Any) -> None:
        self._worker = worker
        self._key = key

    def is_set(self) -> bool:
        state = self._worker.state.tasks.get(self._key)
        return state is None or state.state in ("cancelled", "released", "forgotten")
