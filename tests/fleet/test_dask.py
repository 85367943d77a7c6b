"""Fleets on the workers of a dask cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.dask_cluster import SECONDS, kill_worker
from support.dask_cluster import cluster as cluster

from benchmarks.pods.pod import Pod
from benchmarks.pods.truth import Faults
from tb_memplugin.executors import DaskCluster
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.fleet.tasks import problem_text
from tb_memplugin.logdir import HostFile, find_runs

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]  # warnings of dask's own


@pytest.fixture
def executor(cluster: Any) -> Iterator[DaskCluster]:
    found = DaskCluster(cluster.scheduler_address)
    yield found
    found.stop()


def test_killing_a_worker_half_way_loses_nothing(cluster: Any, executor: DaskCluster, tmp_path: Path) -> None:
    truth = Pod(40, 2, 0.5, faults=Faults(outliers=1, damaged=1)).write(tmp_path)
    (capture,) = captures(find_runs(str(tmp_path)))
    counts: list[int] = []

    def done(count: int, total: int) -> None:
        counts.append(count)
        if count == 5:
            kill_worker(cluster)

    fleet = Scan(lambda: executor).fleet(capture, done)
    assert 5 in counts
    found = {(device.host, device.summary.device): device.summary.peak_bytes for device in fleet.devices}
    assert found == {(device.host, device.memory): device.peak_bytes for device in truth.devices}
    assert [file.host for file in fleet.files if file.problem] == list(truth.damaged)


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_file_that_kills_workers_is_a_row_with_its_reason(executor: DaskCluster) -> None:
    error = executor.submit(die, HostFile("/x", "x", 1, "1-1"), "run").exception(SECONDS)
    assert type(error).__name__ == "KilledWorker"
    assert "has died" in problem_text(error)


class DiesWhenSent:
    """A result that its worker has, and that ends the worker when it is asked for."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        os.kill(os.getpid(), signal.SIGKILL)
        return die, ()


def first_lost_then(outcome: Callable[[], object], marker: Path) -> object:
    if marker.exists():
        return outcome()
    marker.touch()
    return DiesWhenSent()


def fail() -> None:
    raise ValueError("damaged")


def test_a_result_that_is_lost_with_its_worker_is_computed_again(executor: DaskCluster, tmp_path: Path) -> None:
    found = executor.submit(first_lost_then, partial(int, 5), tmp_path / "result")
    failed = executor.submit(first_lost_then, fail, tmp_path / "failure")
    assert found.result(SECONDS) == 5
    assert str(failed.exception(SECONDS)) == "damaged"


def wait_for(marker: Path) -> None:
    while not marker.exists():
        time.sleep(0.05)


def test_tasks_of_an_executor_that_stops_are_cancelled(cluster: Any, tmp_path: Path) -> None:
    executor = DaskCluster(cluster.scheduler_address)
    tasks = [executor.submit(wait_for, tmp_path / "go") for _ in range(4)]
    executor.stop()
    (tmp_path / "go").touch()
    for task in tasks:
        with pytest.raises(CancelledError):
            task.result(SECONDS)
