"""Seconds and memory of processes, and how they are printed."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile
from typing import NamedTuple

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


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


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
