"""Stored dumps of the corpus, for tests on machines without a compiler for TPU or GPU.

    python -m programs.store [NAME[:TARGET] ...] [--changes]

compiles programs and writes tests/data/programs/NAME.TARGET.hlo.pb.gz, XLA's dump, and NAME.TARGET.json: XLA's own
report and the truth. `--changes` compiles stored programs again with the knobs of each change that advice may suggest,
and adds what XLA reports then.
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


def store(builder: CaseBuilder, target: str) -> None:
    """Compile a program for a target and write its files; figures of changes that were stored before are kept."""
    place = FOLDER / f"{builder.name}.{target}.json"
    kept = json.loads(place.read_text())["changes"] if place.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_case(builder.name, target, Path(folder))
        if MACHINE.search(compiled.proto):
            raise ValueError(f"{builder.name} for {target} contains a path of this machine")
        texts = {end: _text(compiled, end) for end in DESCRIPTIONS}
        stored = {
            **report(compiled),
            "changes": kept,
            "chip": {end: text for end, text in texts.items() if text},
            **compiled.truth,
        }
    gzipped = gzip.compress(compiled.proto, compresslevel=9, mtime=0)
    place.with_suffix(".hlo.pb.gz").write_bytes(gzipped)
    place.write_text(_json(stored))
    print(f"{place.stem:36} {len(gzipped) >> 10:5} KiB  {stored['reserved'].get('0', 0) / 2**20:9.1f} MiB", flush=True)


def store_changes(builder: CaseBuilder, target: str) -> None:
    """Compile the changes of a program that is stored, and add what XLA reports then."""
    place = FOLDER / f"{builder.name}.{target}.json"
    stored = json.loads(place.read_text())
    with tempfile.TemporaryDirectory() as folder:
        stored["changes"] = _changes(builder, target, Path(folder))
    place.write_text(_json(stored))
    sizes = {kind: change["reserved"]["0"] >> 20 for kind, change in stored["changes"].items()}
    print(f"{place.stem:36} {stored['reserved']['0'] >> 20} MiB, with changes {sizes}", flush=True)


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
    parser.add_argument("--changes", action="store_true", help="only compile what advice changes")
    chosen = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    words = [word.partition(":") for word in chosen.names or CORPUS]
    pairs = [(name, one) for name, _, target in words for one in ((target,) if target else CORPUS[name].targets)]
    for name, one in pairs:
        (store_changes if chosen.changes else store)(CORPUS[name], one)


if __name__ == "__main__":
    main()
