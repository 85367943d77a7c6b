"""Time to write every buffer of a program as CSV, JSON and Parquet.

    python -m benchmarks.export_rows [--buffers 1000000] [--rounds 3]

Reading is not timed; the first file includes the time to find the roles of buffers. The sizes in the CSV are added up
and compared with those of the recording.
"""

import argparse
import csv
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from benchmarks.generate import generate
from benchmarks.timing import spread
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.views.export.csv import write_csv
from tb_memplugin.views.export.json import write_json
from tb_memplugin.views.export.parquet import write_parquet

WRITERS: dict[str, Callable[[Sequence[Recording], BinaryIO], None]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
}


def write(recording: Recording, suffix: str, file: Path) -> float:
    """Write a file, and return the seconds it took."""
    start = time.perf_counter()
    with file.open("wb") as stream:
        WRITERS[suffix]([recording], stream)
    return time.perf_counter() - start


def check_sizes(recording: Recording, file: Path) -> None:
    with file.open(newline="") as stream:
        total = sum(int(row["size_bytes"]) for row in csv.DictReader(stream))
    if total != int(recording.allocations.size.sum()):
        raise SystemExit(f"the sizes in {file} add up to {total}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    (recording,) = read_hlo(generate(arguments.buffers)[0].SerializeToString(), source="generated")
    for suffix in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"rows.{suffix}"
            seconds = [write(recording, suffix, file) for _ in range(arguments.rounds)]
            print(f"  {suffix:8}  {spread(seconds)}  {file.stat().st_size / 1e6:,.0f} MB")
            if suffix == "csv":
                check_sizes(recording, file)


if __name__ == "__main__":
    main()
