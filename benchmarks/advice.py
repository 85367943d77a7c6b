"""All advice for one program of many buffers, with what it rests on: data flow, twins and roles.

    python -m benchmarks.advice [--buffers 100000] [--rounds 5]

The program is the training step of generate.py. `first` begins with a recording as its first view leaves it; `again`
has the data flow and the roles already, which other views need too. The target: 100,000 buffers in under 1 s.
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
    """Seconds, of a recording of its own."""
    (recording,) = read_hlo(data, source="generated")
    peak(recording)
    seconds = {}
    rests_on: tuple[Callable[[Recording], object], ...] = (dataflow_graph, input_output_pairs, roles)
    for question in rests_on:
        seconds[question.__name__] = timed(partial(question, recording))
    for ask in ADVISERS:
        seconds[ask.__module__.rpartition(".")[2]] = timed(partial(_all, ask, recording))
    seconds["all"] = sum(seconds.values())
    if not advise(recording):
        raise SystemExit("no advice on a step whose layers all keep their activations")
    return seconds


def _all(ask: Callable[[Recording], Iterator[Advice]], recording: Recording) -> list[Advice]:
    return list(ask(recording))


def timed(work: Callable[[], object]) -> float:
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
        seconds = [each[name] for each in rounds]
        missed = "   MISSED" if name == "all" and arguments.buffers <= 100_000 and median(seconds) >= 1 else ""
        print(f"  {name:20}{spread(seconds)}{missed}")


if __name__ == "__main__":
    main()
