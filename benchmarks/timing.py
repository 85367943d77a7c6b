"""Timing of commands that run alternately, so that a slow minute of the machine slows all of them."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

BIN = Path(sys.executable).parent
LAUNCHER = Path(__file__).parent / "launcher.py"
# As on a user's machine, compiled modules are kept from one start of Python to the next.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Cost(NamedTuple):
    """Cost of one run of a process."""

    whole: float  # seconds, from the start of the process
    answer: float  # seconds, from the first request; for a command, from its start
    memory: int  # largest memory of the process in bytes
    size: int  # of the answer in bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of a command."""

    wall_seconds: float  # of the whole process
    printed: Any  # its output, parsed as JSON; None where it is not JSON


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def run_alternately(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Sample]]:
    """Run every command once per round, each in a new process."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            samples[name].append(_run(command))
    return samples


def _run(command: list[str]) -> Sample:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nfailed:\n{done.stderr[-2000:]}")
    try:
        return Sample(wall, json.loads(done.stdout))
    except ValueError:
        return Sample(wall, None)


def cost_of(command: list[str]) -> Cost:
    """Run a command to its end, by a process that takes little memory. Raises SystemExit where it fails."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as problems, NamedTemporaryFile() as figures:
        launch = [sys.executable, "-I", "-S", str(LAUNCHER), figures.name, *command]
        subprocess.run(launch, stdout=output, stderr=problems, env=ENVIRONMENT, check=True)
        code, seconds, kilobytes = figures.read().split()
        if int(code):
            problems.seek(0)
            raise SystemExit(f"{' '.join(command)}\nfailed:\n{problems.read()[-2000:].decode(errors='replace')}")
        return Cost(float(seconds), float(seconds), int(kilobytes) * 1024, output.seek(0, os.SEEK_END))


def process_bytes(name: str, process: int | str = "self") -> int:
    """Return a figure of a process in bytes, from /proc. Unlike with getrusage, peaks begin at the exec."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def tree_bytes(process: int) -> int:
    """Return the sum of the largest memory of a process and of its children that run, in bytes."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return process_bytes("VmHWM", process) + sum(tree_bytes(int(child)) for child in children)


def spread(seconds: Sequence[float]) -> str:
    """Format the median, with the minimum and the maximum in brackets."""
    return f"{median(seconds):.3f} s [{min(seconds):.3f}, {max(seconds):.3f}]"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return how many times faster ours is: the median over pairs of the same round."""
    return median(b / a for a, b in zip(ours, theirs, strict=True))
