"""Time of all advice for one large program, with the analyses that it needs.

    python -m benchmarks.advice [--buffers 100000] [--rounds 5]

The program is the training step of generate.py. The needed analyses are the data flow, the pairs of arguments and
results, and the roles; other views use them too. The target is less than 1 s for 100,000 buffers.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from benchmarks.generate import generate
from benchmarks.timing import spread
from tb_memplugin.analysis.advice import ADVISERS, Advice, advise
from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo


def measure(data: bytes) -> dict[str, float]:
    """Return the seconds of each part, for a newly read recording."""
    (recording,) = read_hlo(data, source="generated")
    peak(recording)
    seconds = {}
    needed: tuple[Callable[[Recording], object], ...] = (dataflow_graph, input_output_pairs, roles)
    for analyze in needed:
        seconds[analyze.__name__] = time_of(partial(analyze, recording))
    for adviser in ADVISERS:
        seconds[adviser.__module__.rpartition(".")[2]] = time_of(partial(_all, adviser, recording))
    seconds["all"] = sum(seconds.values())
    if not advise(recording):
        raise SystemExit("no advice for a step in which every layer keeps its activations")
    return seconds


def _all(adviser: Callable[[Recording], Iterator[Advice]], recording: Recording) -> list[Advice]:
    return list(adviser(recording))


def time_of(work: Callable[[], object]) -> float:
    """Return the seconds that a function takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    data = generate(arguments.buffers)[0].SerializeToString()
    rounds = [measure(data) for _ in range(arguments.rounds)]
    print(f"{arguments.buffers:,} buffers:")
    for name in rounds[0]:
        seconds = [measured[name] for measured in rounds]
        missed = "   MISSED" if name == "all" and arguments.buffers <= 100_000 and median(seconds) >= 1 else ""
        print(f"  {name:20}{spread(seconds)}{missed}")


if __name__ == "__main__":
    main()
