"""Time from a PyTorch snapshot to the bytes of its first view, in a new process, compared with pickle.load.

    python -m benchmarks.cold_snapshot [--events 100000 1000000] [--rounds 3]

Python tools for snapshots start with pickle.load, so its time, without any analysis, is a lower bound for them. The
file was just written, so it is in the file cache.
"""

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.generate_snapshot import generate
from benchmarks.timing import process_bytes, python, ratio, run_alternately, spread

OURS, PICKLE = "tb_memplugin", "pickle.load"


class SnapshotRun(NamedTuple):
    """The cost of one run."""

    seconds: float
    memory: int  # largest growth of the process in bytes, with pages of the mapped file


def ours(file: Path) -> None:
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.page.memory_profile import first_view

    for recording in listing_of_path(str(file)).recordings:
        first_view(recording)


def unpickle(file: Path) -> None:
    with file.open("rb") as stream:
        pickle.load(stream)


READ: dict[str, Callable[[Path], None]] = {OURS: ours, PICKLE: unpickle}


def once(tool: str, file: Path, small: Path) -> SnapshotRun:
    """Measure one run. A small snapshot is read first, so that imports are not timed."""
    READ[tool](small)
    before, start = process_bytes("VmRSS"), time.perf_counter()
    READ[tool](file)
    return SnapshotRun(time.perf_counter() - start, process_bytes("VmHWM") - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=3, metavar=("TOOL", "FILE", "SMALL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        tool, *files = arguments.once
        print(json.dumps(once(tool, *map(Path, files))))
        return
    with tempfile.TemporaryDirectory() as folder:
        small = generate(Path(folder) / "small.pickle", 1000)
        for count in arguments.events:
            file = generate(Path(folder) / "snapshot.pickle", count)
            size = file.stat().st_size
            command = ["-m", "benchmarks.cold_snapshot", "--once"]
            samples_by_tool = run_alternately(
                {name: python(*command, name, str(file), str(small)) for name in READ}, arguments.rounds
            )
            runs_by_tool = {
                name: [SnapshotRun(*sample.printed) for sample in samples] for name, samples in samples_by_tool.items()
            }
            print(f"{count:,} events, {size / 1e6:.0f} MB")
            for name, runs in runs_by_tool.items():
                memory = max(run.memory for run in runs) / size
                print(f"  {name:13} {spread([run.seconds for run in runs])}, {memory:.1f} times the file in memory")
            faster = ratio(*([run.seconds for run in runs_by_tool[name]] for name in (OURS, PICKLE)))
            print(f"  {faster:.1f} times as fast")


if __name__ == "__main__":
    main()
