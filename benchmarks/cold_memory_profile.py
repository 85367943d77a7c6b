"""From the file to the bytes of Memory Profile's first view, in a fresh process, against XProf's converter.

    python -m benchmarks.cold_memory_profile [--events 2200000] [--allocator-events 200000] [--rounds 3]

The file was just written, so it is in memory, and imports are done when the clock starts. Ours pairs every event
and finds every stack; XProf's answer samples 1000 events and has no stacks.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.generate_events import generate
from benchmarks.timing import in_turn, python, ratio, spread

OURS, XPROF = "tb_memplugin", "XProf"


def ours(file: Path) -> tuple[float, int]:
    """Seconds, and bytes of the answers of all allocators."""
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.memory_profile import first_view

    start = time.perf_counter()
    answers = [first_view(recording) for recording in listing_of_path(str(file)).recordings]
    return time.perf_counter() - start, sum(map(len, answers))


def xprofs(file: Path) -> tuple[float, int]:
    from xprof.convert import raw_to_tool_data

    start = time.perf_counter()
    answer, _ = raw_to_tool_data.xspace_to_tool_data([str(file)], "memory_profile", {})
    return time.perf_counter() - start, len(answer or b"")


ONCE: dict[str, Callable[[Path], tuple[float, int]]] = {"ours": ours, "xprof": xprofs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_200_000)
    parser.add_argument("--allocator-events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=2, metavar=("WHOSE", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        print(json.dumps(ONCE[arguments.once[0]](Path(arguments.once[1]))))
        return
    once = ("-m", "benchmarks.cold_memory_profile", "--once")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "localhost.xplane.pb"
        space, truth = generate(arguments.events, arguments.allocator_events)
        file.write_bytes(space.SerializeToString())
        commands = {OURS: python(*once, "ours", str(file)), XPROF: python(*once, "xprof", str(file))}
        print(f"{truth.events:,} events, {truth.allocator_events:,} of allocators, {file.stat().st_size:,} bytes")
        samples = in_turn(commands, arguments.rounds)
    seconds = {name: [sample.printed[0] for sample in taken] for name, taken in samples.items()}
    for name, taken in samples.items():
        print(f"  {name:12}  {spread(seconds[name])}  answer {taken[0].printed[1]:,} bytes")
    print(f"  {ratio(seconds[OURS], seconds[XPROF]):.1f} times as fast as XProf")


if __name__ == "__main__":
    main()
