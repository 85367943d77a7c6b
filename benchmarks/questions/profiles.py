"""The profiles that the questions are about, and what is known of them without our readers and analyses."""

from __future__ import annotations

import ast
import gzip
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generate
from benchmarks.pods.pod import Pod, Trend, write_trend
from benchmarks.pods.truth import Capture, Faults
from tb_memplugin.fit.sweep import run_name, write_record
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.protos import hlo_pb2, pprof_pb2

DEMO = Path(__file__).parents[2] / "demo_logdir"
GIB = 1 << 30
LIMIT = 15 * GIB + 768 * (1 << 20)
# Bytes that a made-up step reserves: fixed, and for each item of the batch.
FIXED_BYTES, ITEM_BYTES = 3 * GIB, 200 << 20
BATCHES = (8, 32, 64, 65, 128)


@dataclass(frozen=True)
class Profiles:
    """What was written to a folder. Paths are relative to it."""

    program: generate.ExpectedProgram
    pod: Capture
    trend: Trend

    def constants(self, script: str) -> dict[str, int]:
        """Return the integers that a script of the demo assigns to names, tuples of them too."""
        found: dict[str, int] = {}
        for node in ast.parse((DEMO / script).read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Tuple):
                names = [ast.unparse(name) for name in target.elts]
                found |= dict(zip(names, ast.literal_eval(node.value), strict=True))
        return found

    def line_of(self, script: str, text: str) -> int:
        """Return the number of the first line of a script that contains a text."""
        return next(n for n, line in enumerate((DEMO / script).read_text().splitlines(), 1) if text in line)


def write_profiles(folder: Path) -> Profiles:
    """Write all profiles into a folder."""
    shutil.copytree(DEMO, folder / "demo", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for batch in BATCHES:
        reserved = FIXED_BYTES + batch * ITEM_BYTES
        candidate = Candidate("fit_gpt.py:step", "v5e:2x2", (("batch", batch),))
        made = Outcome(
            candidate,
            reserved_bytes=reserved,
            peak_bytes=reserved,
            capacity_bytes=LIMIT,
            limit_bytes=LIMIT,
            searched="batch",
            run=run_name(candidate),
        )
        write_record(made, folder / "fits")
    faults = Faults(outliers=1, leaks=1, missing=1, damaged=1, other_programs=1)
    return Profiles(
        generate.write(folder / "generated", 3000)[1],
        Pod(12, 2, 0.3, faults=faults).write(folder / "pod"),
        write_trend(Pod(1, 1, 0.3), folder / "days", 4),
    )


def bytes_by_line(file: Path) -> Counter[str]:
    """Return the live bytes of each innermost line of a device memory profile below the demo, sample by sample."""
    profile = pprof_pb2.Profile.FromString(gzip.decompress(file.read_bytes()))
    text = [entry.decode() for entry in profile.string_table]
    functions = {function.id: text[function.filename] for function in profile.function}
    lines = {
        location.id: [(functions[line.function_id], line.line) for line in location.line]
        for location in profile.location
    }
    size = [text[kind.type] for kind in profile.sample_type].index("space")
    found = Counter[str]()
    for sample in profile.sample:
        own = [place for location in sample.location_id for place in lines[location] if "make_device" in place[0]]
        if own:
            found[f"{Path(own[0][0]).name}:{own[0][1]}"] += sample.value[size]
    return found


def reserved_bytes(folder: Path) -> int:
    """Return the buffer allocations of HBM in a dump, without those of threads."""
    (file,) = folder.glob("*.hlo.pb.gz")
    program = hlo_pb2.HloProto.FromString(gzip.decompress(file.read_bytes()))
    found = program.buffer_assignment.buffer_allocations
    return sum(one.size for one in found if one.color == 0 and not one.is_thread_local)
