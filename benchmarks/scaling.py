"""Time and memory of the first view over the size of the profile, on a cold server, beside xprof-rs.

    python -m benchmarks.scaling [--rounds 3] [--largest 2000000] [--profiles FOLDER] [--write]

Programs have 1,000 to 2,000,000 buffers, and hosts and PyTorch snapshots 10,000 to 4,000,000 events; of those of a
host, a tenth are of allocators. The growth from each size to the next is compared with n log n, and the memory with
twice the file and 100 MB. xprof-rs gets no program of more than 500,000 buffers, which would take it a minute.

`--write` keeps the figures in results/scaling.json, and draws results/scaling.svg. Generating the largest program takes
minutes, and 10 GB of memory; `--profiles` keeps the profiles for the next time.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from math import log
from pathlib import Path

from benchmarks import cold_server
from benchmarks.cold_server import OURS, XPROF_RS
from benchmarks.profiles import events, program, snapshot
from benchmarks.results.figures import Figures, Measured, allowed_memory, save
from benchmarks.rivals import measure
from benchmarks.works import HERE, RS, Measure, Work

BUFFERS = (1_000, 10_000, 100_000, 500_000, 2_000_000)
EVENTS = (10_000, 100_000, 1_000_000, 4_000_000)
MOST_BUFFERS_OF_RS = 500_000
# Beside n log n: larger tables miss the processor's caches more often, and machines are never idle.
TOLERANCE = 0.15

OUR_VIEWS: dict[str, Measure] = {HERE: partial(OURS.measure, view=cold_server.our_first_views)}


def works(largest: int) -> dict[str, Work]:
    """Return the work of each size, by its kind and number."""
    timeline: dict[str, Measure] = {RS: partial(XPROF_RS.measure, view=cold_server.xprof_timeline), **OUR_VIEWS}
    profile: dict[str, Measure] = {RS: partial(XPROF_RS.measure, view=cold_server.xprof_memory_profile), **OUR_VIEWS}
    few = [n for n in EVENTS if n <= largest * 2]
    return {
        **{
            f"buffers {n}": Work("", partial(program, n), timeline if n <= MOST_BUFFERS_OF_RS else OUR_VIEWS)
            for n in BUFFERS
            if n <= largest
        },
        **{f"events {n}": Work("", partial(events, n, n // 10), profile) for n in few},
        **{f"snapshot {n}": Work("", partial(snapshot, n), OUR_VIEWS) for n in few},
    }


def growth(figures: Figures) -> Iterator[str]:
    """Yield a line for each size: how our time grows from it to the next, and how much of the allowed memory it takes.

    Time that grows as n to the power of 1 is linear.
    """
    sizes: dict[str, dict[int, Measured]] = {}
    for key, measured in figures.items():
        kind, number = key.split()
        sizes.setdefault(kind, {})[int(number)] = measured
    for kind, of_kind in sizes.items():
        for before, size in pairwise((0, *of_kind)):
            measured = of_kind[size]
            share = memory(measured) / allowed_memory(measured)
            line = f"{kind} {size:,}: {share:.2f} of the allowed memory{' MISSED' if share > 1 else ''}"
            if before:
                power = log(seconds(measured) / seconds(of_kind[before])) / log(size / before)
                allowed = log(size * log(size) / (before * log(before))) / log(size / before)
                missed = " MISSED" if power > allowed + TOLERANCE else ""
                line += f"; since {before:,}, time grew as n^{power:.2f} (n log n: n^{allowed:.2f}){missed}"
            yield line


def seconds(measured: Measured, tool: str = HERE) -> float:
    return min(cost.answer for cost in measured.costs[tool])


def memory(measured: Measured, tool: str = HERE) -> int:
    return max(cost.memory for cost in measured.costs[tool])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=int, default=BUFFERS[-1], help="buffers; of events, twice as many")
    parser.add_argument("--profiles", type=Path, help="keep the profiles in this folder, and use those that are there")
    parser.add_argument("--write", action="store_true", help="keep the figures, and draw the plot")
    options = parser.parse_args()
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for key, work in works(options.largest).items():
            measured = figures[key] = measure(work, options.rounds, options.profiles or Path(folder))
            for tool in measured.costs:
                about = f"{seconds(measured, tool):.3f} s, {memory(measured, tool) / 1e6:.0f} MB"
                print(f"{key:20} {tool:14} {about}", flush=True)
    print("", *growth(figures), sep="\n")
    if options.write:
        save("scaling", figures)
        from benchmarks.results.plot import draw

        draw(figures)


if __name__ == "__main__":
    main()
