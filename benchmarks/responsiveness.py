"""Time of a small run's first view while the same server reads a large file.

    python -m benchmarks.responsiveness [--large program events snapshot samples] [--rounds 3] [--profiles FOLDER]

The small run is the demo's training step. Its file is touched before each request, so that it is read again. A request
lists the run and asks for the first view of its largest recording, as the page does. The large file is read again in
each round: a program of 500,000 buffers, a host with 2,200,000 events, a PyTorch snapshot of 1,000,000 events, or a
device profile of 1,000,000 samples.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from benchmarks.cold_server import OURS, Client, first_view
from benchmarks.profiles import demo_step, events, made, program, samples, snapshot

PAUSE_SECONDS = 0.02
ALONE = 30  # requests
SMALL = "small"
LARGE = {
    "program": partial(program, 500_000),
    "events": partial(events, 2_200_000, 200_000),
    "snapshot": partial(snapshot, 1_000_000),
    "samples": partial(samples, 1_000_000),
}


def measure(names: list[str], profiles: Path, rounds: int) -> None:
    with tempfile.TemporaryDirectory(dir=profiles) as folder:
        logdir = Path(folder)
        for run, write in {SMALL: partial(demo_step), **{name: LARGE[name] for name in names}}.items():
            shutil.copytree(made(write, profiles), logdir / run)
        with OURS.running(logdir) as (client, _):
            _timed(client, logdir, SMALL)  # imports what is used first
            print(_line("alone", [_timed(client, logdir, SMALL) for _ in range(ALONE)]))
            for name in names:
                took, beside = zip(*(_beside(client, logdir, name) for _ in range(rounds)), strict=True)
                every = [seconds for of_round in beside for seconds in of_round]
                print(_line(f"beside the first view of {name}, {median(took):.2f} s", every), flush=True)


def _beside(client: Client, logdir: Path, large: str) -> tuple[float, list[float]]:
    """Return how long the large file took, and the times of the small run meanwhile."""
    thread = threading.Thread(target=_timed, args=(client.another(), logdir, large))
    began = time.perf_counter()
    thread.start()
    samples = []
    while thread.is_alive():
        time.sleep(PAUSE_SECONDS)
        samples.append(_timed(client, logdir, SMALL))
    return time.perf_counter() - began, samples


def _timed(client: Client, logdir: Path, run: str) -> float:
    for file in (logdir / run).rglob("*.*"):
        os.utime(file)
    began = time.perf_counter()
    name = next(each["name"] for each in client.json("api/runs")["runs"] if each["name"].split("/")[0] == run)
    first_view(client, name)
    return time.perf_counter() - began


def _line(about: str, seconds: list[float]) -> str:
    middle, most = 1000 * median(seconds), 1000 * max(seconds)
    p95 = 1000 * quantiles(seconds, n=20, method="inclusive")[-1]
    return f"small run {about}: {middle:.0f} ms, p95 {p95:.0f} ms, at most {most:.0f} ms ({len(seconds)} requests)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", nargs="+", default=list(LARGE), choices=list(LARGE))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profiles", type=Path, help="keep the profiles in this folder, and use those that are there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options.large, options.profiles or Path(folder), options.rounds)


if __name__ == "__main__":
    main()
