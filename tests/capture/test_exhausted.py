"""Jobs that run out of descriptors, threads, address space or a standard output: capture never ends them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from capture.test_watch_jobs import ENVIRONMENT
from support.servers import REPOSITORY

pytest.importorskip("jax")

JOB = """
import os, resource, signal, subprocess, sys, threading, time
import jax.numpy as jnp
from tb_memplugin import capture

kept = jnp.ones(1 << 10).block_until_ready()
{shortage}
with capture.watch(sys.argv[1], every=0.02) as watched:
    for number in range(5):
        watched.step(number)
        with watched.phase("train"):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.02)
    watched.gauges()
    {inside}
after_step = capture.snapshot_every(1, sys.argv[1])
after_step(1)
try:
    with capture.on_oom(sys.argv[1]):
        raise ValueError("RESOURCE_EXHAUSTED: Out of memory")
except ValueError:
    os._exit(7)  # the job's own end
"""
SHORTAGES = {
    "descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
    "threads": """
def start(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
""",
    "address space": """
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), -1))
""",
    "standard output": "sys.stdout.close(), sys.stderr.close()",
    "standard descriptors": "os.close(1), os.close(2)",
}
STORM = """
code = "import os, sys\\nfor _ in range(30000): os.kill(int(sys.argv[1]), 10)"
    subprocess.run([sys.executable, "-c", code, str(os.getpid())], check=True)
"""


def run(folder: Path, shortage: str = "", inside: str = "") -> subprocess.CompletedProcess[str]:
    code = JOB.format(shortage=shortage, inside=inside.strip())
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, cwd=REPOSITORY)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("name", SHORTAGES)
def test_a_job_goes_on(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, SHORTAGES[name])
    assert done.returncode == 7, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_storm_of_signals_is_one_snapshot(tmp_path: Path) -> None:
    done = run(tmp_path, inside=STORM)
    assert done.returncode == 7, done.stderr
    assert len(list(tmp_path.rglob("*.prof"))) <= 3  # of the signals, of the step, and of the error
