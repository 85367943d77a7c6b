"""A server on a logdir in which runs are added, rewritten and deleted, and a large file is read again and again.

Its memory and open files must not grow.

Ends with 1 if the second half of the time used clearly more than the first, after a time to warm up.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from benchmarks.load_client import Load, run
from benchmarks.served import APIS, Figures, Served, growing, rewritten, served, watched

ROUND_SECONDS = 5
PAUSE_SECONDS = 0.05
LARGE_BUFFERS = 190_000  # 120 MB
LARGE_SECONDS = 20  # between two times that the large file is rewritten
RUNS_KEPT = 20
GROWTH_ALLOWED = 1.15
MEGABYTES_ALLOWED = 30  # of noise, such as fragments of the heap
FILES_ALLOWED = 10


def soak(
    host: str, seconds: float, clients: int, every_seconds: float, large_buffers: int = 0
) -> tuple[Figures, Load, int]:
    """Return the figures of a server, what its clients saw, and the number of runs that were written."""
    total = Load()
    with ExitStack() as stack:
        server = stack.enter_context(served(host, large_buffers))
        made = stack.enter_context(growing(server.logdir, every_seconds, RUNS_KEPT))
        figures = stack.enter_context(watched(server.pid))
        fixed = server.paths("train_step/cpu")
        if large_buffers:
            [file] = (server.logdir / "large").rglob("*.xplane.pb")
            stack.enter_context(rewritten(file, LARGE_SECONDS))
            fixed += [path for path in server.paths("large/cpu") if "overview" in path or "memory_viewer" in path]
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            paths = [*fixed, *_newest(server, made)]
            load = asyncio.run(run(server.url, paths, clients, min(left, ROUND_SECONDS), PAUSE_SECONDS))
            total.seconds += load.seconds
            total.statuses += load.statuses
    return figures, total, len(made)


def _newest(server: Served, made: Sequence[int]) -> list[str]:
    """Return requests for the newest run; none where it is deleted or half written."""
    try:
        return server.paths(f"{made[-1]:06}") if made else []
    except (OSError, KeyError):
        return []


def growth(figures: Figures) -> tuple[float, float, float, float]:
    """Return the medians of megabytes and of files of the first and the second half, after a fifth to warm up."""
    start = len(figures.files) // 5
    middle = (start + len(figures.files)) // 2
    megabytes, files = figures.megabytes, figures.files
    return (
        median(megabytes[start:middle]),
        median(megabytes[middle:]),
        median(files[start:middle]),
        median(files[middle:]),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="standalone", choices=list(APIS))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two runs")
    parser.add_argument("--large-buffers", type=int, default=LARGE_BUFFERS)
    options = parser.parse_args(arguments)
    figures, load, runs = soak(
        options.host, options.minutes * 60, options.clients, options.every, options.large_buffers
    )
    before, after, files_before, files_after = growth(figures)
    step = max(len(figures.files) // 12, 1)
    print(f"{options.host}: {len(load.seconds)} requests, {runs} runs written, answers {dict(load.statuses)}")
    print(f"  p99 {1e3 * load.quantile(0.99):.0f} ms, worst {load.quantile(1):.2f} s")
    print(f"  memory {', '.join(f'{megabytes:.0f}' for megabytes in figures.megabytes[::step])} MB")
    print(f"  open files {', '.join(map(str, figures.files[::step]))}")
    print(f"  halves: {before:.0f} and {after:.0f} MB, {files_before:.0f} and {files_after:.0f} files", flush=True)
    grows = after > before * GROWTH_ALLOWED + MEGABYTES_ALLOWED or files_after > files_before + FILES_ALLOWED
    return int(grows)


if __name__ == "__main__":
    sys.exit(main())
