"""Time from a file to the bytes of Memory Viewer's first view, in a new process, compared with XProf's converter.

    python -m benchmarks.cold_first_view [--buffers 10000 100000 500000] [--rounds 3]

Both read the same <module>.hlo_proto.pb, which XProf's server extracts from a profile before its first answer; this
saves XProf a pass over the profile. A third row is our time from the profile itself, which is what a user opens. The
files were just written, so they are in the file cache, and imports are not timed.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import xprof_converter
from benchmarks.generate import ExpectedProgram, generate, profile
from benchmarks.timing import Sample, python, ratio, run_alternately, spread
from benchmarks.writer import MODULE, PROGRAM_ID

SIZES = (10_000, 100_000, 500_000)
OURS, OURS_PROFILE, XPROF = "tb_memplugin", "tb_memplugin, from the profile", "XProf"


def ours(file: Path) -> tuple[float, int, int]:
    """Return the seconds, the bytes of the answer, and the peak in it."""
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.page.memory_viewer import first_view

    start = time.perf_counter()
    (recording,) = listing_of_path(str(file)).recordings
    answer = first_view(recording)
    seconds = time.perf_counter() - start
    header = json.loads(answer[8 : 8 + int.from_bytes(answer[4:8], "little")])
    return seconds, len(answer), header["meta"]["recording"]["peak_bytes"]


def theirs(file: Path) -> tuple[float, int, int]:
    import xprof.convert.raw_to_tool_data  # noqa: F401

    start = time.perf_counter()
    answer = xprof_converter.memory_viewer(file)
    seconds = time.perf_counter() - start
    return seconds, len(answer), round(_number(answer, b'"peakHeapMib":') * 2**20)


def _number(text: bytes, key: bytes) -> float:
    """Return the number after a key. Parsing all of XProf's JSON would take longer than making it."""
    start = text.index(key) + len(key)
    return float(text[start : start + 40].split(b",")[0].rstrip(b"}"))


MEASURE: dict[str, Callable[[Path], tuple[float, int, int]]] = {"ours": ours, "xprof": theirs}


def write(folder: Path, buffers: int) -> tuple[Path, Path, ExpectedProgram]:
    """Write a module and its profile, and return the expected figures. Frees the gigabytes of the program on return."""
    proto, expected = generate(buffers)
    module, space = folder / f"{MODULE}({PROGRAM_ID}){xprof_converter.SUFFIX}", folder / "localhost.xplane.pb"
    module.write_bytes(proto.SerializeToString())
    space.write_bytes(profile(proto).SerializeToString())
    return module, space, expected


def measure(buffers: int, rounds: int) -> tuple[ExpectedProgram, dict[str, list[Sample]]]:
    once = ("-m", "benchmarks.cold_first_view", "--once")
    with tempfile.TemporaryDirectory() as folder:
        module, space, expected = write(Path(folder), buffers)
        commands = {
            OURS: python(*once, "ours", str(module)),
            OURS_PROFILE: python(*once, "ours", str(space)),
            XPROF: python(*once, "xprof", str(module)),
        }
        return expected, run_alternately(commands, rounds)


def report(buffers: int, expected: ExpectedProgram, samples: dict[str, list[Sample]]) -> None:
    seconds = {name: [sample.printed["seconds"] for sample in runs] for name, runs in samples.items()}
    print(f"\n{buffers:,} logical buffers, peak {expected.peak_bytes:,} bytes")
    for name, runs in samples.items():
        last: dict[str, Any] = runs[-1].printed
        if last["peak_bytes"] != expected.peak_bytes:
            raise SystemExit(f"{name}: the peak is {last['peak_bytes']:,} bytes")
        faster = "" if name == XPROF else f"  {ratio(seconds[name], seconds[XPROF]):.1f} times faster"
        print(f"  {name:32}{spread(seconds[name])}  answer {last['bytes']:,} bytes{faster}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", nargs=2, metavar=("TOOL", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        tool, file = arguments.once
        print(json.dumps(dict(zip(("seconds", "bytes", "peak_bytes"), MEASURE[tool](Path(file)), strict=True))))
        return
    for buffers in arguments.buffers:
        report(buffers, *measure(buffers, arguments.rounds))


if __name__ == "__main__":
    main()
