"""Time to find the role of every buffer of a program, from its data flow.

    python -m benchmarks.roles [--buffers 10000 100000 500000] [--rounds 5]

Reading is not timed. The passes that the data flow shows are checked against the names in the program: instructions
with jvp in their names must be forward, and those with transpose(jvp backward.
"""

import argparse
import time
from collections.abc import Iterator

from benchmarks.generate import generate
from benchmarks.timing import spread
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, training_step
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo


def count_wrong_passes(recording: Recording) -> int:
    """Count the instructions whose pass differs from their names, among those whose results are used."""
    found, program = training_step(recording), recording.program
    if found is None or program is None:
        raise SystemExit("no training step was found in a training step")
    phase = found.phase[-recording.length :]
    backward = program.scope.contains(b"transpose(")
    forward = program.scope.contains(b"jvp(") & ~backward
    wrong = (forward & (phase != TrainingPhase.FORWARD)) | (backward & (phase != TrainingPhase.BACKWARD))
    return int((wrong & (phase != TrainingPhase.NONE)).sum())


def measure(data: bytes, rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        (recording,) = read_hlo(data, source="generated")
        start = time.perf_counter()
        roles(recording)
        yield time.perf_counter() - start
        if wrong := count_wrong_passes(recording):
            raise SystemExit(f"{wrong} instructions are in the wrong pass")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, nargs="+", default=[10_000, 100_000, 500_000])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for buffers in arguments.buffers:
        data = generate(buffers)[0].SerializeToString()
        print(f"  {buffers:8,} buffers  {spread(list(measure(data, arguments.rounds)))}")


if __name__ == "__main__":
    main()
