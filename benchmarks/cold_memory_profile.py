"""Time from a file to the bytes of Memory Profile's first view, in a new process, compared with XProf's converter.

    python -m benchmarks.cold_memory_profile [--events 2200000] [--allocator-events 200000] [--rounds 3]

The file was just written, so it is in the file cache. Ours contains every event; XProf's answer samples 1000 of them.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.generate_events import generate
from benchmarks.timing import process_bytes, python, ratio, run_alternately, spread

OURS, XPROF = "tb_memplugin", "XProf"


class ColdRun(NamedTuple):
    """The cost of one run."""

    seconds: float
    answer: int  # bytes, for all allocators
    memory: int  # largest growth of the process in bytes, with pages of the mapped file


def ours(file: Path) -> int:
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.page.memory_profile import first_view

    return sum(len(first_view(recording)) for recording in listing_of_path(str(file)).recordings)


def theirs(file: Path) -> int:
    from xprof.convert import raw_to_tool_data

    answer, _ = raw_to_tool_data.xspace_to_tool_data([str(file)], "memory_profile", {})
    return len(answer or b"")


READ: dict[str, Callable[[Path], int]] = {"ours": ours, "xprof": theirs}


def once(tool: str, file: Path, warm_up: Path) -> ColdRun:
    """Measure one run. A small profile is read first, so that imports are not timed."""
    READ[tool](warm_up)
    before, start = process_bytes("VmRSS"), time.perf_counter()
    answer = READ[tool](file)
    return ColdRun(time.perf_counter() - start, answer, process_bytes("VmHWM") - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_200_000)
    parser.add_argument("--allocator-events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=3, metavar=("TOOL", "FILE", "SMALL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        tool, *files = arguments.once
        print(json.dumps(once(tool, *map(Path, files))))
        return
    with tempfile.TemporaryDirectory() as folder:
        small, file = Path(folder) / "small.xplane.pb", Path(folder) / "localhost.xplane.pb"
        small.write_bytes(generate(100, 10)[0].SerializeToString())
        space, expected = generate(arguments.events, arguments.allocator_events)
        file.write_bytes(space.SerializeToString())
        size = file.stat().st_size
        commands = {
            name: python("-m", "benchmarks.cold_memory_profile", "--once", tool, str(file), str(small))
            for name, tool in ((OURS, "ours"), (XPROF, "xprof"))
        }
        print(f"{expected.events:,} events, {expected.allocator_events:,} of allocators, {size:,} bytes")
        samples = run_alternately(commands, arguments.rounds)
    runs = {name: [ColdRun(*sample.printed) for sample in measured] for name, measured in samples.items()}
    for name, measured in runs.items():
        memory = max(run.memory for run in measured)
        print(
            f"  {name:12}  {spread([run.seconds for run in measured])}  answer {measured[0].answer:,} bytes  "
            f"memory {memory:,} bytes, {memory / size:.1f} times the file"
        )
    seconds = {name: [run.seconds for run in measured] for name, measured in runs.items()}
    print(f"  {ratio(seconds[OURS], seconds[XPROF]):.1f} times as fast as XProf")


if __name__ == "__main__":
    main()
