"""A dask cluster of three processes, for tests of executors that end some of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

SECONDS = 120  # for what other processes may delay


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Start a cluster in which a task fails with its second worker.

    So one of three workers is left. On a busy machine, dask (2026.8) does not replace a worker that dies while its
    nanny still waits for it to start, and tasks would wait forever for the last worker.
    """
    distributed = pytest.importorskip("distributed")
    found = distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
        scheduler_kwargs={"allowed_failures": 1},
    )
    try:
        yield found
    finally:
        with suppress(TimeoutError):  # of a nanny that still waits
            found.close(timeout=10)


def kill_worker(cluster: Any) -> None:
    """Kill the process of one of the workers."""
    os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.pid), signal.SIGKILL)
