"""Commands run in turn, each in a process of its own: a slow minute of the machine slows all of them."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    wall_seconds: float  # of the whole process
    printed: Any  # what it printed, read as JSON; None where it printed nothing of the kind


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def in_turn(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Sample]]:
    """A round runs every command once."""
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


def process_bytes(name: str) -> int:
    """Bytes of this process, as Linux says. Unlike getrusage's, its peak does not go back to before the exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def spread(seconds: Sequence[float]) -> str:
    """Median, and the least and the most in brackets."""
    return f"{median(seconds):.3f} s [{min(seconds):.3f}, {max(seconds):.3f}]"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How many times faster ours is: the median over pairs of the same round."""
    return median(b / a for a, b in zip(ours, theirs, strict=True))
