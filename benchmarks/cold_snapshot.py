"""From a PyTorch snapshot to the bytes of its first view, in a fresh process, against reading it with pickle alone.

    python -m benchmarks.cold_snapshot [--events 100000 1000000] [--rounds 3]

The tools that read snapshots in Python begin with pickle.load, which makes objects and replays nothing: it is the least
that any of them takes. The file was just written, so the system has it in memory.
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
from benchmarks.timing import in_turn, process_bytes, python, ratio, spread

OURS, PICKLE = "tb_memplugin", "pickle.load"


class Taken(NamedTuple):
    seconds: float
    memory: int  # bytes by which the process grew at most, pages of the mapped file among them


def ours(file: Path) -> None:
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.page.memory_profile import first_view

    for recording in listing_of_path(str(file)).recordings:
        first_view(recording)


def unpickled(file: Path) -> None:
    with file.open("rb") as stream:
        pickle.load(stream)


ONCE: dict[str, Callable[[Path], None]] = {OURS: ours, PICKLE: unpickled}


def once(whose: str, file: Path, small: Path) -> Taken:
    """Imports are done with a small snapshot, before the clock starts."""
    ONCE[whose](small)
    before, start = process_bytes("VmRSS"), time.perf_counter()
    ONCE[whose](file)
    return Taken(time.perf_counter() - start, process_bytes("VmHWM") - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=3, metavar=("WHOSE", "FILE", "SMALL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        whose, *files = arguments.once
        print(json.dumps(once(whose, *map(Path, files))))
        return
    with tempfile.TemporaryDirectory() as folder:
        small = generate(Path(folder) / "small.pickle", 1000)
        for count in arguments.events:
            file = generate(Path(folder) / "snapshot.pickle", count)
            size = file.stat().st_size
            command = ["-m", "benchmarks.cold_snapshot", "--once"]
            found = in_turn({name: python(*command, name, str(file), str(small)) for name in ONCE}, arguments.rounds)
            taken = {name: [Taken(*sample.printed) for sample in samples] for name, samples in found.items()}
            print(f"{count:,} events, {size / 1e6:.0f} MB")
            for name, runs in taken.items():
                memory = max(run.memory for run in runs) / size
                print(f"  {name:13} {spread([run.seconds for run in runs])}, {memory:.1f} times the file in memory")
            faster = ratio(*([run.seconds for run in taken[name]] for name in (OURS, PICKLE)))
            print(f"  {faster:.1f} times as fast")


if __name__ == "__main__":
    main()
