"""Time of a small run's first view while the same server reads a large file.

    python -m benchmarks.responsiveness [--buffers 500000]

The small run is the demo's training step. Its file is touched before each request, so that it is read again. A request
lists the run and asks for the first view of its largest recording, as the page does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.served import Served, served

PAUSE_SECONDS = 0.02
ANSWER_SECONDS = 600
LARGE = "large"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, default=500_000)
    arguments = parser.parse_args()
    with served("standalone", arguments.buffers) as server:
        names = [run["name"] for run in server.get("runs")["runs"]]
        large = next(name for name in names if name.startswith(LARGE))
        small = next(name for name in names if name.startswith("train_step"))
        file = next((server.logdir / "train_step").rglob("*.xplane.pb"))
        _first_view(server, small)  # loads the modules
        print(_line("alone", [_timed(server, small, file) for _ in range(10)]))
        seconds, samples = _beside(lambda: _first_view(server, large), lambda: _timed(server, small, file))
        print(_line(f"beside the first view of {arguments.buffers:,} buffers, {seconds:.2f} s", samples))


def _first_view(server: Served, run: str) -> None:
    recordings = server.get("recordings", run=run)["recordings"]
    url = f"{server.url}{server.api}api/memory_viewer?{urlencode({'id': recordings[0]['id']})}"
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
        answer.read()


def _timed(server: Served, run: str, file: Path) -> float:
    time.sleep(PAUSE_SECONDS)
    os.utime(file)
    began = time.perf_counter()
    _first_view(server, run)
    return time.perf_counter() - began


def _beside(work: Callable[[], None], sample: Callable[[], float]) -> tuple[float, list[float]]:
    """Return how long the work took, and the samples that were taken meanwhile."""
    thread = threading.Thread(target=work)
    began = time.perf_counter()
    thread.start()
    samples = []
    while thread.is_alive():
        samples.append(sample())
    return time.perf_counter() - began, samples


def _line(about: str, seconds: list[float]) -> str:
    milliseconds = [1000 * second for second in seconds]
    middle, most = statistics.median(milliseconds), max(milliseconds)
    return f"small run {about}: {middle:.0f} ms, at most {most:.0f} ms ({len(seconds)} requests)"


if __name__ == "__main__":
    main()
