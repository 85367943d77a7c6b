"""Time from a JAX device profile to the page's first data, in a new process.

    python -m benchmarks.device_profile [--samples 1000000] [--rounds 3]

The profile is like jaxlib's: compressed by gzip, one sample per distinct traceback, size and device. Imports are not
timed, and the file was just written, so it is in the file cache.
"""

import argparse
import gzip
import json
import random
import tempfile
import time
from pathlib import Path

from benchmarks.timing import python, run_alternately, spread
from tb_memplugin.protos.pprof_pb2 import Profile

DEPTH = 24  # frames; tracebacks through jit are 20 to 40 deep
SHARED = 16  # frames of JAX and of the loop, which many stacks have in common
STACKS = 50_000  # distinct ones, each with several sizes and on eight devices
LINES = 4000  # of the program


def generate(samples: int, seed: int = 0) -> Profile:
    """Generate a profile with a number of samples; equal seeds give equal profiles."""
    rng = random.Random(seed)
    profile = Profile(string_table=[b""])
    entries: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        if value not in entries:
            entries[value] = len(profile.string_table)
            profile.string_table.append(value.encode())
        return entries[value]

    for name, unit in (("allocations", "count"), ("space", "bytes")):
        profile.sample_type.add(type=text(name), unit=text(unit))
    for i in range(1, LINES + 1):
        file = (
            f"/site-packages/jax/_src/file_{i % 40}.py" if i <= LINES // 4 else f"/home/user/model/layer_{i % 300}.py"
        )
        profile.function.add(id=i, name=text(f"function_{i}"), filename=text(file), start_line=i)
        profile.location.add(id=i).line.add(function_id=i, line=i % 900)
    kind, device, buffer = text("kind"), text("device"), text("buffer")
    devices = [text(f"TPU_{i}(process=0,({i},0,0,0))") for i in range(8)]
    common = [[rng.randint(1, LINES) for _ in range(SHARED)] for _ in range(300)]
    stacks = [
        [rng.randint(LINES // 4, LINES) for _ in range(DEPTH - SHARED)] + rng.choice(common) for _ in range(STACKS)
    ]
    for _ in range(samples):
        count = rng.randint(1, 3)
        size = rng.randint(1, 4096) << 8
        sample = profile.sample.add(location_id=rng.choice(stacks), value=[count, count * size])
        sample.label.add(key=kind, str=buffer)
        sample.label.add(key=device, str=rng.choice(devices))
    return profile


def once(file: Path) -> dict[str, float]:
    from tb_memplugin.analysis.call_graph.graph import Granularity, Refine
    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.views.page.call_graph import call_graph
    from tb_memplugin.views.page.device_profile import device_profile

    start, work = time.perf_counter(), time.process_time()
    recordings = listing_of_path(str(file)).recordings
    read = time.perf_counter()
    json.dumps(device_profile(recordings[0], recordings))
    first, worked = time.perf_counter(), time.process_time()
    answer = call_graph(recordings, None, Granularity.FUNCTION, Refine(fold=True), 60)
    json.dumps(answer)
    return {
        "read": read - start,
        "first": first - start,
        "work": worked - work,
        "graph": time.perf_counter() - first,
        "bytes": sum(int(recording.allocations.charge.sum()) for recording in recordings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        print(json.dumps(once(Path(arguments.once))))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "memory.prof"
        profile = generate(arguments.samples)
        size = sum(sample.value[1] for sample in profile.sample)
        file.write_bytes(gzip.compress(profile.SerializeToString(), 6))
        del profile
        print(f"{arguments.samples:,} samples of {DEPTH} frames, {file.stat().st_size:,} bytes")
        samples = run_alternately(
            {"ours": python("-m", "benchmarks.device_profile", "--once", str(file))}, arguments.rounds
        )
    printed = [sample.printed for sample in samples["ours"]]
    if any(answer["bytes"] != size for answer in printed):
        raise SystemExit("the recordings have fewer bytes than the profile")
    for name, label in (
        ("read", "file to recordings"),
        ("first", "to the first view"),
        ("work", "processor time"),
        ("graph", "then the call graph"),
    ):
        print(f"  {label:22}{spread([seconds[name] for seconds in printed])}")


if __name__ == "__main__":
    main()
