"""Roles against the truth, on the stored dumps of the corpus or on dumps in a folder.

    python -m programs.roles_score [NAME ...] [--dumps FOLDER] [-v]

prints one line for each dump: the share of argument bytes with a wrong role, and of the bytes that are live at the peak
of the main memory. `-v` lists what is wrong. FOLDER has a folder NAME-TARGET for each program, as compile.py writes it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from programs.argument_roles import scored_arguments, share_wrong
from programs.case import ROLES
from programs.peak_truth import PeakRow, PeakTruth, symbol
from programs.stored import stored_programs

from tb_memplugin.model.kinds import Role
from tb_memplugin.readers.hlo import read_hlo

ROLE_OF = {name: Role[name.replace(" ", "_").upper()] for name in ROLES}


def scored_peak(proto: bytes, truth: dict[str, Any]) -> list[PeakRow]:
    """Return the rows that are live at the peak of the device's main memory, judged."""
    true = {symbol(leaf["path"]): ROLE_OF[leaf["role"]] for leaf in truth["arguments"]}
    trained = [leaf for leaf in truth["arguments"] if leaf["role"] == "parameter"]
    dimensions = [leaf[key] for leaf in trained for key in ("shape", "local_shape") if key in leaf]
    recording = next(r for r in read_hlo(proto, source="compiled") if r.program and r.program.memory_space == 0)
    return list(PeakTruth(proto, recording, true, dimensions).rows())


def share_wrong_at_peak(rows: list[PeakRow]) -> float:
    """Return the share of the live bytes with a wrong role, in percent."""
    return 100 * sum(row.bytes for row in rows if row.role not in row.right) / max(sum(row.bytes for row in rows), 1)


def dumps_of(folder: Path | None) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Yield the name, HloProto and truth of each stored dump, or of each dump in a folder."""
    if folder is None:
        for program in stored_programs():
            yield str(program), program.proto, program.facts
        return
    for truth in sorted(folder.glob("*/truth.json")):
        protos = sorted(truth.parent.glob("*after_optimizations.hlo.pb"), key=lambda path: path.stat().st_size)
        if protos:
            yield truth.parent.name, protos[-1].read_bytes(), json.loads(truth.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of dumps; all without one")
    parser.add_argument("--dumps", type=Path, help="a folder of dumps, instead of the stored ones")
    parser.add_argument("-v", "--verbose", action="store_true", help="list what is wrong")
    chosen = parser.parse_args()
    for name, proto, truth in dumps_of(chosen.dumps):
        if not chosen.names or any(part in name for part in chosen.names):
            show(name, proto, truth, chosen.verbose)


def show(name: str, proto: bytes, truth: dict[str, Any], verbose: bool) -> None:
    """Print the score of one program."""
    arguments, rows = scored_arguments(read_hlo(proto, source=name), truth), scored_peak(proto, truth)
    size, live = sum(a.bytes for a in arguments), sum(row.bytes for row in rows)
    print(
        f"{name:34} arguments {share_wrong(arguments):6.1f} % of {size / 2**20:9.1f} MiB, "
        f"peak {share_wrong_at_peak(rows):6.1f} % of {live / 2**20:9.1f} MiB",
        flush=True,
    )
    if verbose:
        for a in sorted((a for a in arguments if not a.right), key=lambda a: -a.bytes):
            print(f"    {a.bytes / 2**20:9.3f} MiB {a.path}: {a.role}, in truth {a.truth}")
        for row in rows:
            if row.role not in row.right:
                right = " or ".join(role.name.lower() for role in row.right)
                judged = f"{row.role.name.lower()}, in truth {right}: {row.reason}"
                print(f"    {row.bytes / 2**20:9.3f} MiB at the peak, {row.name} {row.shape}: {judged}")


if __name__ == "__main__":
    main()
