"""One table of all tools: seconds from the first request to the first view, of the whole process, and memory.

    python -m benchmarks.rivals [--rounds 3] [--works program-100k summary] [--profiles FOLDER] [--write]

Each run is a new server in a new process, on a new copy of the logdir. All tools run once in each round, so that a slow
minute of the machine slows all of them. `--write` keeps the figures in results/rivals.json, and puts the table that is
made of them into the pages that contain it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.profiles import made
from benchmarks.results.figures import Figures, Measured, save
from benchmarks.results.table import full, write_pages
from benchmarks.timing import Cost
from benchmarks.works import HERE, WORKS, Work

# Another tool that takes longer runs once: XProf takes minutes for the largest program.
ONE_ROUND_SECONDS = 10.0


def measure(work: Work, rounds: int, folder: Path) -> Measured:
    """Make the profile below a folder, unless it is there, and do the work in each round with each tool."""
    original = made(work.write, folder)
    costs: dict[str, list[Cost]] = {name: [] for name in work.tools}
    for _ in range(rounds):
        for name, tool in work.tools.items():
            if costs[name] and costs[name][0].whole > ONE_ROUND_SECONDS and name != HERE:
                continue
            copy = folder / "copy"
            shutil.copytree(original, copy, copy_function=os.link)  # XProf and xprof-rs write into the logdir
            costs[name].append(tool(copy))
            shutil.rmtree(copy)
    return Measured(sum(file.stat().st_size for file in original.rglob("*") if file.is_file()), costs)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=list(WORKS))
    parser.add_argument("--profiles", type=Path, help="keep the profiles in this folder, and use those that are there")
    parser.add_argument("--write", action="store_true", help="keep the figures, and update the pages")
    options = parser.parse_args(arguments)
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for key in options.works:
            figures[key] = measure(WORKS[key], options.rounds, options.profiles or Path(folder))
            print(full({key: figures[key]}, heading=key == options.works[0]), flush=True)
            if options.write:
                save("rivals", {key: figures[key]})
    if options.write:
        write_pages()


if __name__ == "__main__":
    main()
