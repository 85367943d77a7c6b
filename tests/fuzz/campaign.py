"""Campaigns: workers that try inputs one after the other. Where an input ends a worker, another one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.faults import Fault, found_in, save
from fuzz.state import Progress, State
from support.servers import REPOSITORY, TESTS

PER_WORKER = 20_000  # inputs, after which a new worker starts with fresh memory
STUCK_SECONDS = 600  # without progress: a worker that waits for something takes no processor time
RESTART = 75


@dataclass
class Statistics:
    """Counts of a subject's inputs; `ended` counts workers that an input ended."""

    tried: int = 0
    answered: int = 0
    faults: int = 0
    ended: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    found: list[Fault] = field(default_factory=list)

    def add(self, progress: Progress) -> None:
        self.tried += progress.tried
        self.answered += progress.answered
        self.faults += progress.faults
        self.slowest = max(self.slowest, progress.slowest)


@dataclass(frozen=True)
class Campaign:
    """The folder of the faults, and the module and environment of the workers."""

    faults: Path
    module: str = "fuzz.worker"
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, name: str, seed: int, first: int, count: int, seconds: float = 1e9, corpus: str = "") -> Statistics:
        """Try `count` inputs of a subject, as far as `seconds` are enough."""
        began, number, found = time.monotonic(), first, Statistics()
        while number < first + count and (left := seconds - (time.monotonic() - began)) > 0:
            few = min(PER_WORKER, first + count - number)
            number = self._one_worker(name, found, [str(seed), str(number), str(few), f"{left:.0f}"], corpus)
        found.seconds = time.monotonic() - began
        found.found = found_in(self.faults / name)
        return found

    def _one_worker(self, name: str, found: Statistics, numbers: Sequence[str], corpus: str) -> int:
        """Run one worker, and return the number of the next input."""
        with tempfile.TemporaryDirectory() as folder:
            path, log = Path(folder, "state"), Path(folder, "log")
            state = State(path)
            state.end(Progress(int(numbers[1])))
            command = [
                sys.executable,
                "-P",
                "-m",
                self.module,
                name,
                *numbers,
                str(path),
                str(self.faults / name),
                corpus,
            ]
            with open(log, "wb") as output:
                worker = subprocess.Popen(
                    command, stdout=output, stderr=output, env=self._environment(), cwd=REPOSITORY
                )
                status = _wait(worker, state)
            progress, data = state.read()
            state.close()
            found.add(progress)
            if status in (0, RESTART):
                return progress.number
            text = log.read_text(errors="replace")[-20_000:]
            if not data:
                raise RuntimeError(f"the worker of {name} ended with {status} between two inputs:\n{text[-3000:]}")
            found.add(Progress(tried=1, faults=1))
            found.ended += 1
            save(self.faults / name, f"{_reason(status)} {_innermost(text)}", data, text)
            return progress.number + 1

    def _environment(self) -> dict[str, str]:
        paths = os.pathsep.join([*filter(None, [self.environment.get("PYTHONPATH")]), str(REPOSITORY), str(TESTS)])
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return {**os.environ, **single, **self.environment, "PYTHONPATH": paths}


def _wait(worker: subprocess.Popen[bytes], state: State) -> int:
    """Wait for a worker, and end it where it makes no progress. Return its exit status."""
    number, since = -1, time.monotonic()
    while True:
        try:
            return worker.wait(0.5)
        except subprocess.TimeoutExpired:
            current = state.read()[0].number
            if current != number:
                number, since = current, time.monotonic()
            elif time.monotonic() - since > STUCK_SECONDS:
                worker.send_signal(signal.SIGABRT)  # which writes the stack
                try:
                    return worker.wait(10)
                except subprocess.TimeoutExpired:
                    worker.kill()
        except BaseException:
            worker.kill()
            raise


def _reason(status: int) -> str:
    names = {-signal.SIGPROF: "too slow", -signal.SIGABRT: "aborted or stuck", -signal.SIGKILL: "killed"}
    return names.get(status) or (signal.Signals(-status).name if status < 0 else f"exit status {status}")


def _innermost(text: str) -> str:
    """Return the innermost function of the tool in the stack that the fault handler wrote."""
    lines = [line.strip() for line in text.splitlines() if "File " in line and "tb_memplugin/" in line]
    lines = [line for line in lines if "/tests/" not in line]
    return lines[0] if lines else ""
