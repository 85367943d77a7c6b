"""Real jobs that are watched: what is in their logdir while they run, and after they were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.servers import REPOSITORY

from tb_memplugin.catalog import listing_of_path
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording

pytest.importorskip("jax")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
LOOP = """
import sys, time
import jax.numpy as jnp
from tb_memplugin import capture

kept = [jnp.ones(1 << 20)]
with capture.watch(sys.argv[1], every=0.05) as watched:
    for number in range(1000):
        watched.step(number)
        kept.append(jnp.ones(1000))
        print(number, flush=True)
        time.sleep(0.01)
"""


@contextmanager
def job(logdir: Path, code: str = LOOP) -> Iterator[subprocess.Popen[str]]:
    """Run a job, and kill it at the end of the block."""
    command = [sys.executable, "-c", textwrap.dedent(code), str(logdir)]
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def curves(logdir: Path) -> list[Recording]:
    found = listing_of_path(str(logdir))
    assert not found.problems
    return [recording for recording in found.recordings if recording.kind is RecordingKind.WATCH]


def samples(logdir: Path) -> int:
    files = list(logdir.rglob("*.watch"))
    return sum(recording.length for recording in curves(logdir)) if files else 0


def test_a_killed_job_leaves_its_curve_up_to_the_last_sample(tmp_path: Path) -> None:
    with job(tmp_path) as process:
        wait_for(lambda: samples(tmp_path) > 4)
        [running] = curves(tmp_path)
        assert running.is_live and running.run.startswith("device_profiles/")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        killed_ns = time.time_ns()
    [recording] = curves(tmp_path)
    assert recording.length >= running.length and recording.is_live, "nobody could finish the file"
    assert recording.reported is not None and recording.reported.in_use[-1] >= 4 << 20
    assert recording.clock is not None and recording.capture_info is not None and recording.capture_info.time_ns
    last_ns = recording.capture_info.time_ns + int(recording.clock[-1])
    assert recording.sampling is not None
    assert killed_ns - last_ns < 20 * recording.sampling.interval_ns
