"""Time of analyses, exports and comparisons of large generated profiles, none of which other tools have.

    python -m benchmarks.analyses [--only samples compare trees advice export] [--rounds 3]

Each round analyzes newly read recordings. Reading is timed for `samples` only, since benchmarks.rivals measures it for
the others. Each part checks what it measures: trees by the live bytes, exports and comparisons by their sums.
"""

import argparse
import csv
import gzip
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import BinaryIO

import numpy as np

from benchmarks import generate_samples
from benchmarks.generate import generate
from tb_memplugin.analysis.advice import ADVISERS, advise
from tb_memplugin.analysis.call_graph import Granularity, Refine
from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.classification import Classification, forest, weigh
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.compare.comparison import CompareBy, compared
from tb_memplugin.questions.export.formats import write_csv, write_json, write_parquet
from tb_memplugin.questions.kinds.call_graph import call_graph
from tb_memplugin.questions.kinds.device_profile import device_profile
from tb_memplugin.readers.hlo import read_hlo

SAMPLES = 1_000_000
POSITIONS = 50  # of a program, at which its trees are weighed
TREES = (
    (Classification.MODEL, False),
    (Classification.MODEL, True),
    (Classification.SOURCE, False),
    (Classification.FUNCTION, False),
    (Classification.SHAPE, False),
)
WRITERS: dict[str, Callable[[Sequence[Recording], BinaryIO], None]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
}


class Times:
    """Seconds by label, of all rounds."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    @contextmanager
    def of(self, label: str) -> Iterator[None]:
        """Add the seconds that the block takes."""
        start = time.perf_counter()
        yield
        self.seconds[label].append(time.perf_counter() - start)


def program(buffers: int, seed: int = 0) -> Callable[[], Recording]:
    """Generate a program, and return a function that reads it again at each call."""
    content = generate(buffers, seed)[0].SerializeToString()

    def read() -> Recording:
        (recording,) = read_hlo(content, source="generated")
        return recording

    return read


def samples(times: Times, rounds: int) -> None:
    """Time the first view and the call graph of a device profile."""
    profile = generate_samples.generate(SAMPLES)
    size = sum(sample.value[1] for sample in profile.sample)
    with tempfile.NamedTemporaryFile(suffix=".prof") as file:
        file.write(gzip.compress(profile.SerializeToString(), 6))
        file.flush()
        del profile
        for _ in range(rounds):
            with times.of(f"{SAMPLES:,} samples: from the file to the first view"):
                recordings = listing_of_path(file.name).recordings
                json.dumps(device_profile(recordings[0], recordings))
            with times.of("then the call graph, frameworks folded"):
                json.dumps(call_graph(recordings, None, Granularity.FUNCTION, Refine(fold=True), 60))
            check(size, sum(int(recording.allocations.charge.sum()) for recording in recordings))


def compare(times: Times, rounds: int) -> None:
    """Time comparisons of two programs at their peaks, and of two in which every buffer is live."""
    read = program(100_000, 0), program(100_000, 1)
    labels = {CompareBy.ROLE: "by category", CompareBy.SOURCE: "by source line", CompareBy.MODEL: "by layer"}
    for _ in range(rounds):
        a, b = (each() for each in read)
        for by, label in labels.items():
            with times.of(f"two programs of 100,000 buffers at their peaks, {label}"):
                answer = compared(a, b, None, None, by)
                json.dumps(answer)
            change = sum(step["bytes_b"] - step["bytes_a"] for step in answer["steps"])
            check(answer["b"]["bytes"] - answer["a"]["bytes"], change)
        a, b = map(all_live, (a, b))
        with times.of("every buffer of both at once, by source line"):
            json.dumps(compared(a, b, None, None, CompareBy.SOURCE))


def all_live(recording: Recording) -> Recording:
    """Return a recording in which each buffer is live from the start to the end."""
    rows = recording.allocations
    start, end = np.full(len(rows), -1), np.full(len(rows), recording.length)
    return replace(recording, allocations=replace(rows, start=start, end=end, charge=rows.size))


def trees(times: Times, rounds: int) -> None:
    """Time to build each forest of a program's memory, and to weigh it at a position."""
    read = program(500_000)
    for _ in range(rounds):
        recording = read()
        for by, merge in TREES:
            name = f"{by.value}, layers merged" if merge else by.value
            with times.of(f"500,000 buffers by {name}: built"):
                found = forest(recording, by, merge)
            for position in np.linspace(0, recording.length - 1, POSITIONS).astype(int).tolist():
                with times.of(f"500,000 buffers by {name}: weighed at a position"):
                    rows = live_rows(recording, position)
                    total = weigh(found, rows, recording.allocations.charge[rows])
                check(int(usage(recording).live[position]), int(total[found.parent < 0].sum()))


def advice(times: Times, rounds: int) -> None:
    """Time each kind of advice for a program, after the analyses that it needs and that other views use too."""
    read = program(100_000)
    for _ in range(rounds):
        recording = read()
        peak(recording)
        with times.of("100,000 buffers: data flow, pairs and roles"):
            dataflow_graph(recording), input_output_pairs(recording), roles(recording)
        for adviser in ADVISERS:
            with times.of(f"100,000 buffers: advice on {adviser.__module__.rpartition('.')[2]}"):
                list(adviser(recording))
        if not advise(recording):
            raise SystemExit("no advice for a step in which every layer keeps its activations")


def export(times: Times, rounds: int) -> None:
    """Time to write every buffer of a program. The first file includes the time to find the roles of buffers."""
    recording = program(1_000_000)()
    with tempfile.TemporaryDirectory() as folder:
        for suffix, write in WRITERS.items():
            file = Path(folder) / f"rows.{suffix}"
            for _ in range(rounds):
                with times.of(f"1,000,000 buffers as {suffix}"), file.open("wb") as stream:
                    write([recording], stream)
            print(f"{file.name}: {file.stat().st_size / 1e6:,.0f} MB")
        with (Path(folder) / "rows.csv").open(newline="") as stream:
            total = sum(int(row["size_bytes"]) for row in csv.DictReader(stream))
    check(int(recording.allocations.size.sum()), total)


def check(wanted: int, found: int) -> None:
    """Raise SystemExit where two sums of bytes that should agree differ."""
    if wanted != found:
        raise SystemExit(f"{found:,} bytes, not {wanted:,}")


PARTS = {part.__name__: part for part in (samples, compare, trees, advice, export)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.only:
        times = Times()
        PARTS[name](times, options.rounds)
        for label, seconds in times.seconds.items():
            low, middle, high = (1000 * of(seconds) for of in (min, median, max))
            print(f"  {label:64}{middle:,.1f} ms [{low:,.1f}, {high:,.1f}]", flush=True)


if __name__ == "__main__":
    main()
