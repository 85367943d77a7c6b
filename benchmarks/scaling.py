"""Time and memory of the first view over the size of the profile, on a cold server, beside xprof-rs.

    python -m benchmarks.scaling [--rounds 3] [--largest 2000000] [--write]

Programs have 1,000 to 2,000,000 buffers, and hosts have 10,000 to 4,000,000 events, a tenth of them of allocators.
`--write` keeps the figures in results/scaling.json, and draws results/scaling.svg. Generating the largest program takes
minutes, and 10 GB of memory.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from benchmarks import cold_server
from benchmarks.cold_server import OURS, XPROF_RS
from benchmarks.results.figures import Figures, save
from benchmarks.rivals import measure
from benchmarks.works import HERE, RS, Work, events, program

BUFFERS = (1_000, 10_000, 100_000, 500_000, 2_000_000)
EVENTS = (10_000, 100_000, 1_000_000, 4_000_000)


def works(largest: int) -> dict[str, Work]:
    """Return the work of each size, by its kind and number."""
    ours = {HERE: partial(OURS.measure, view=cold_server.our_first_views)}
    of_programs = {RS: partial(XPROF_RS.measure, view=cold_server.xprof_timeline), **ours}
    of_events = {RS: partial(XPROF_RS.measure, view=cold_server.xprof_memory_profile), **ours}
    return {
        **{f"buffers {n}": Work("", partial(program, n), of_programs) for n in BUFFERS if n <= largest},
        **{f"events {n}": Work("", partial(events, n, n // 10), of_events) for n in EVENTS if n <= largest * 2},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=int, default=BUFFERS[-1])
    parser.add_argument("--write", action="store_true", help="keep the figures, and draw the plot")
    options = parser.parse_args()
    figures: Figures = {}
    for key, work in works(options.largest).items():
        with tempfile.TemporaryDirectory() as folder:
            figures[key] = measure(work, options.rounds, Path(folder))
        for tool, costs in figures[key].costs.items():
            best = min(cost.answer for cost in costs)
            print(f"{key:20} {tool:14} {best:.3f} s, {max(cost.memory for cost in costs) / 1e6:.0f} MB", flush=True)
    if options.write:
        save("scaling", figures)
        from benchmarks.results.plot import draw

        draw(figures)


if __name__ == "__main__":
    main()
