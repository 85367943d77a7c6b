"""From the file to the bytes of Memory Profile's first view, in a fresh process, against XProf's converter.

    python -m benchmarks.cold_memory_profile [--events 2200000] [--allocator-events 200000] [--rounds 3]

The file was just written, so the system has it in memory. Ours pairs every event; XProf's answer samples 1000 of them.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.generate_events import generate
from benchmarks.timing import in_turn, process_bytes, python, ratio, spread

OURS, XPROF = "tb_memplugin", "XProf"


class Taken(NamedTuple):
    seconds: float
    answer: int  # bytes, of all allocators together
    memory: int  # bytes by which the process grew at most, pages of the mapped file among them


def ours(file: Path) -> int:
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.page.memory_profile import first_view

    return sum(len(first_view(recording)) for recording in listing_of_path(str(file)).recordings)


def xprofs(file: Path) -> int:
    from xprof.convert import raw_to_tool_data

    answer, _ = raw_to_tool_data.xspace_to_tool_data([str(file)], "memory_profile", {})
    return len(answer or b"")


ONCE: dict[str, Callable[[Path], int]] = {"ours": ours, "xprof": xprofs}


def once(whose: str, file: Path, warm_up: Path) -> Taken:
    """Imports are done with a small profile, before the clock starts."""
    ONCE[whose](warm_up)
    before, start = process_bytes("VmRSS"), time.perf_counter()
    answer = ONCE[whose](file)
    return Taken(time.perf_counter() - start, answer, process_bytes("VmHWM") - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_200_000)
    parser.add_argument("--allocator-events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=3, metavar=("WHOSE", "FILE", "SMALL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        whose, *files = arguments.once
        print(json.dumps(once(whose, *map(Path, files))))
        return
    with tempfile.TemporaryDirectory() as folder:
        small, file = Path(folder) / "small.xplane.pb", Path(folder) / "localhost.xplane.pb"
        small.write_bytes(generate(100, 10)[0].SerializeToString())
        space, truth = generate(arguments.events, arguments.allocator_events)
        file.write_bytes(space.SerializeToString())
        size = file.stat().st_size
        commands = {
            name: python("-m", "benchmarks.cold_memory_profile", "--once", whose, str(file), str(small))
            for name, whose in ((OURS, "ours"), (XPROF, "xprof"))
        }
        print(f"{truth.events:,} events, {truth.allocator_events:,} of allocators, {size:,} bytes")
        samples = in_turn(commands, arguments.rounds)
    taken = {name: [Taken(*sample.printed) for sample in some] for name, some in samples.items()}
    for name, some in taken.items():
        memory = max(one.memory for one in some)
        print(
            f"  {name:12}  {spread([one.seconds for one in some])}  answer {some[0].answer:,} bytes  "
            f"memory {memory:,} bytes, {memory / size:.1f} times the file"
        )
    seconds = {name: [one.seconds for one in some] for name, some in taken.items()}
    print(f"  {ratio(seconds[OURS], seconds[XPROF]):.1f} times as fast as XProf")


if __name__ == "__main__":
    main()
