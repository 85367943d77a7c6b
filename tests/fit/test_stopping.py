"""Ctrl+C, SIGTERM and SIGKILL of a fit: no process stays, and what is finished is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fit.steps import write_code

pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
CODE = """
import jax, os, time
def step(devices, batch=8):
    if batch > 8:
        if os.fork() == 0:
            time.sleep(1000)
        open({started!r} + str(os.getpid()), "w").close()
        time.sleep(1000)
    return jax.jit(lambda x: x * 2), (jax.ShapeDtypeStruct((batch, 8), "float32"),)
"""


def running(marker: str) -> list[int]:
    """Return the processes whose environment has a marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in path.read_bytes() and path.with_name("cmdline").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_stays_and_finished_candidates_are_kept(number: signal.Signals, tmp_path: Path) -> None:
    step, log = write_code(tmp_path, CODE.format(started=str(tmp_path / "started"))), tmp_path / "log"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    marker = f"FIT_TEST_MARKER={tmp_path}"
    command = [sys.executable, "-m", "tb_memplugin.cli", "fit", step, "--on", "cpu:1", "--vary", "batch=8,16,32"]
    fit = subprocess.Popen(
        [*command, "--jobs", "3", "--to", str(log), "--json"],
        env={**os.environ, "FIT_TEST_MARKER": str(tmp_path), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: len(list(tmp_path.glob("started*"))) == 2 and len(list(log.glob("*/fit.json"))) == 1)
    assert len(running(marker)) >= 6  # the command, its server, and two steps that forked
    fit.send_signal(number)
    printed, errors = fit.communicate(timeout=120)
    assert wait_until(lambda: not running(marker)), running(marker)
    assert not list(temporary.glob("tb_memplugin_fit_*"))
    assert json.loads(next(log.glob("*/fit.json")).read_text())["knobs"] == {"batch": 8}
    if number != signal.SIGKILL:
        assert [one["knobs"] for one in json.loads(printed)["candidates"]] == [{"batch": 8}]
        assert "Traceback" not in errors and fit.returncode == 130
