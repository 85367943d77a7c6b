"""A dask cluster of two processes, for tests of executors."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

SECONDS = 120  # for the start of a worker where other processes use all cores


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    found = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    try:
        yield found
    finally:
        found.close(timeout=SECONDS)


def wait_for_workers(cluster: Any) -> None:
    """Wait until both workers run: a test before may have killed them."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=SECONDS)


def kill_worker(cluster: Any) -> None:
    """Kill the process of one of the workers."""
    os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.pid), signal.SIGKILL)
