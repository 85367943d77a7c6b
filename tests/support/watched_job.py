"""A job that capture.watch watches, as a process: it saves snapshots when asked to, and ends when told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers import REPOSITORY

LOOP = """
import sys, time
from pathlib import Path
import jax.numpy as jnp
from tb_memplugin import capture

kept, number = [jnp.ones(1 << 20)], 0
with capture.watch(sys.argv[1], every=0.2) as watched:
    while not Path(sys.argv[2]).exists():
        watched.step(number)
        kept.append(jnp.ones(1 << 14))
        time.sleep(0.1)
        number += 1
"""
END_SECONDS = 60


@dataclass(frozen=True)
class WatchedJob:
    process: subprocess.Popen[bytes]
    stop_file: Path

    def save_snapshot(self) -> None:
        os.kill(self.process.pid, signal.SIGUSR1)

    def end(self) -> None:
        """End the job as a script that is done."""
        self.stop_file.touch()
        assert self.process.wait(END_SECONDS) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(END_SECONDS)


@contextmanager
def watched_job(logdir: Path, folder: Path) -> Iterator[WatchedJob]:
    """Run a job on the CPU until the end of the block; what it prints goes to `folder`."""
    stop_file = folder / "stop"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
    with (folder / "job.log").open("wb") as log:
        command = [sys.executable, "-c", LOOP, str(logdir), str(stop_file)]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    job = WatchedJob(process, stop_file)
    try:
        yield job
    finally:
        job.kill()
