"""Where compilations run: threads that each run a process, or workers of a dask cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from tb_memplugin.fit.watching import work_in_thread


def default_jobs() -> int:
    """Return the number of compilations to run at a time: XLA uses about two cores for each."""
    return max((os.cpu_count() or 1) // 2, 1)


@contextmanager
def local_executor(jobs: int | None = None) -> Iterator[Executor]:
    """Yield an executor of compilations in processes of this machine. On an exception, such as Ctrl+C, they end."""
    jobs = jobs or default_jobs()
    stopped = threading.Event()
    pool = ThreadPoolExecutor(jobs, "fit", initializer=work_in_thread, initargs=(stopped, jobs))
    try:
        yield pool
    except BaseException:
        stopped.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
