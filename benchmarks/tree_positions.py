"""Time to build the forest of a program's memory once, and to weigh it at many positions.

    python -m benchmarks.tree_positions [--buffers 100000 500000] [--positions 50]

A position is computed as for a command or a test: the live rows, and their bytes in every node of the forest. The sum
of the roots is checked against the live bytes. The target is less than 100 ms for a position of 500,000 buffers, once
the forest is built.
"""

import argparse
import time
from statistics import median

import numpy as np

from benchmarks.generate import generate
from tb_memplugin.analysis.ownership.classification import Classification, forest, weigh
from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo

TARGET = 0.1  # seconds
SHOWN = (
    (Classification.MODEL, False),
    (Classification.MODEL, True),
    (Classification.SOURCE, False),
    (Classification.FUNCTION, False),
    (Classification.SHAPE, False),
)


def measure(recording: Recording, by: Classification, merge: bool, positions: int) -> None:
    start = time.perf_counter()
    found = forest(recording, by, merge)
    built = time.perf_counter() - start
    seconds = []
    for position in np.linspace(0, recording.length - 1, positions).astype(int).tolist():
        start = time.perf_counter()
        rows = live_rows(recording, position)
        total = weigh(found, rows, recording.allocations.charge[rows])
        seconds.append(time.perf_counter() - start)
        if total[found.parent < 0].sum() != usage(recording).live[position]:
            raise SystemExit(f"position {position}: the roots do not add up to the live bytes")
    name = f"{by}, layers merged" if merge else by.value
    print(
        f"  {name:22}{len(found.parent):8,} nodes   built in {built:.3f} s   "
        f"per position {1000 * median(seconds):.1f} ms "
        f"[{1000 * min(seconds):.1f}, {1000 * max(seconds):.1f}]{'' if median(seconds) < TARGET else '   MISSED'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--positions", type=int, default=50)
    arguments = parser.parse_args()
    for buffers in arguments.buffers:
        (recording,) = read_hlo(generate(buffers)[0].SerializeToString(), source="generated")
        print(f"{buffers:,} buffers:")
        for by, merge in SHOWN:
            measure(recording, by, merge, arguments.positions)


if __name__ == "__main__":
    main()
