"""Stored dumps of the corpus, for tests on machines without a compiler for TPU or GPU.

    python -m programs.store [NAME[:TARGET] ...] [--changes]

compiles programs and writes tests/data/programs/NAME.TARGET.hlo.pb.gz, XLA's dump, and NAME.TARGET.json: XLA's own
report and the truth. `--changes` also compiles each program with the knobs of each change, for its first target and for
GPU, and adds what XLA reports then; without it, the figures that were stored before are kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from programs.case import CaseBuilder
from programs.compile import Compiled, compile_case
from programs.corpus import CORPUS
from programs.stored import FOLDER
from programs.targets import GPUS

TOTAL = re.compile(r"^Memory Space: .*\(color=(\d+)\)\nTotal bytes: (\d+)", re.MULTILINE)
LIVE_RANGE_PEAK = re.compile(r"Stack trace breakdown for peak usage: ([\d ]+) bytes")
DESCRIPTIONS = ("target_arguments.txt", "gpu_target_config.pbtxt")  # of the chip, beside the dump
MACHINE = re.compile(rb"/(?:work|root|tmp|home)/")


def report(compiled: Compiled) -> dict[str, Any]:
    """Return the bytes that XLA reports for each memory space, and the peak of its live ranges in all of them."""
    totals = {color: int(size) for color, size in TOTAL.findall(_text(compiled, "memory-usage-report.txt"))}
    found = LIVE_RANGE_PEAK.search(_text(compiled, "live-range.txt"))
    return {"reserved": totals, "live_range_peak": int(found[1].replace(" ", "")) if found else None}


def _text(compiled: Compiled, end: str) -> str:
    """Return XLA's report of the program; the dump has one of each small program that computes constants, too."""
    paths = sorted(compiled.folder.glob(f"*{end}"), key=lambda path: path.stat().st_size)
    return paths[-1].read_text() if paths else ""


def store(builder: CaseBuilder, target: str, changes: bool) -> None:
    """Compile a program for a target and write its files."""
    place = FOLDER / f"{builder.name}.{target}.json"
    kept = json.loads(place.read_text())["changes"] if place.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_case(builder.name, target, Path(folder) / "base")
        if MACHINE.search(compiled.proto):
            raise ValueError(f"{builder.name} for {target} contains a path of this machine")
        texts = {end: _text(compiled, end) for end in DESCRIPTIONS}
        first = target == builder.targets[0] or target in GPUS
        stored = {
            **report(compiled),
            "changes": _changes(builder, target, Path(folder)) if changes and first else kept,
            "chip": {end: text for end, text in texts.items() if text},
            **compiled.truth,
        }
    gzipped = gzip.compress(compiled.proto, compresslevel=9, mtime=0)
    place.with_suffix(".hlo.pb.gz").write_bytes(gzipped)
    place.write_text(_json(stored))
    print(f"{place.stem:36} {len(gzipped) >> 10:5} KiB  {stored['reserved'].get('0', 0) / 2**20:9.1f} MiB", flush=True)


def _changes(builder: CaseBuilder, target: str, folder: Path) -> dict[str, Any]:
    """Return XLA's report of the program with each change, by the kind of advice."""
    found = {}
    for kind, knobs in builder.changes.items():
        compiled = compile_case(builder.name, target, folder / kind.replace(" ", "_"), **knobs)
        found[kind] = {"knobs": dict(knobs), **report(compiled)}
    return found


def _json(stored: dict[str, Any]) -> str:
    """Return JSON with one line for each entry, and for each argument."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stored.items() if key != "arguments"]
    arguments = ",\n  ".join(json.dumps(leaf) for leaf in stored["arguments"])
    return "{\n " + ",\n ".join([*lines, f'"arguments": [\n  {arguments}\n ]']) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs, and targets of them; all without one")
    parser.add_argument("--changes", action="store_true", help="compile what advice changes, too")
    chosen = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    words = [word.partition(":") for word in chosen.names or CORPUS]
    pairs = [(name, one) for name, _, target in words for one in ((target,) if target else CORPUS[name].targets)]
    for name, one in pairs:
        store(CORPUS[name], one, chosen.changes)


if __name__ == "__main__":
    main()
