"""Time to compare two modules, from their recordings to the page's data, in a new process.

    python -m benchmarks.compare [--buffers 100000] [--rounds 3]

Reading the modules, which benchmarks.first_view measures, and imports are not timed. At the peaks, as few buffers
are live as in a real step; `all live` compares two modules in which every buffer is live.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.generate import write
from benchmarks.timing import python, run_alternately, spread

LABELS = {"role": "at the peaks, by category", "source": "by source line", "model": "by layer", "all live": "all live"}


def once(first: Path, second: Path) -> dict[str, float]:
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.model.recording import Recording
    from tb_memplugin.views.page.compare import CompareBy, compared

    (a,), (b,) = (listing_of_path(str(path)).recordings for path in (first, second))

    def seconds(one: Recording, other: Recording, by: CompareBy) -> float:
        start = time.perf_counter()
        answer = compared(one, other, None, None, by)
        json.dumps(answer)
        elapsed = time.perf_counter() - start
        change = sum(step["bytes_b"] - step["bytes_a"] for step in answer["steps"])
        if answer["b"]["bytes"] - answer["a"]["bytes"] != change:
            raise SystemExit(f"the steps by {by} do not add up")
        return elapsed

    def all_live(recording: Recording) -> Recording:
        rows = recording.allocations
        every = np.full(len(rows), -1), np.full(len(rows), recording.length)
        return replace(recording, allocations=replace(rows, start=every[0], end=every[1], charge=rows.size))

    found = {by.value: seconds(a, b, by) for by in (CompareBy.ROLE, CompareBy.SOURCE, CompareBy.MODEL)}
    return {**found, "all live": seconds(all_live(a), all_live(b), CompareBy.SOURCE)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=2, metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        print(json.dumps(once(*map(Path, arguments.once))))
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(write(Path(folder) / side, arguments.buffers, seed)[0]) for seed, side in enumerate("ab")]
        command = python("-m", "benchmarks.compare", "--once", *paths)
        samples = run_alternately({"ours": command}, arguments.rounds)["ours"]
    print(f"two modules of {arguments.buffers:,} buffers")
    for name, label in LABELS.items():
        print(f"  {label:28}{spread([sample.printed[name] for sample in samples])}")


if __name__ == "__main__":
    main()
