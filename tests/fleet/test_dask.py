"""Fleets on the workers of a dask cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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
    killed: list[int] = []

    def done(count: int, total: int) -> None:
        if count == 5:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    fleet = Scan(lambda: executor).fleet(capture, done)
    assert killed
    found = {(device.host, device.summary.device): device.summary.peak_bytes for device in fleet.devices}
    assert found == {(device.host, device.memory): device.peak_bytes for device in truth.devices}
    assert [file.host for file in fleet.files if file.problem] == list(truth.damaged)


def die(file: HostFile, run: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_file_that_kills_workers_is_a_row_with_its_reason(
    executor: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = executor.submit(die, HostFile("/x", "x", 1, "1-1"), "run")
    begun = time.monotonic()
    error = task.exception(60)
    assert type(error).__name__ == "KilledWorker"
    assert "has died" in problem_text(error)
    assert time.monotonic() - begun < 60
