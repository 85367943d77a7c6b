"""Roles against the truth: argument bytes with a wrong role, for each program of the corpus.

    python -m programs.roles_score [NAME ...] [--target TARGET ...] [--dumps FOLDER] [-v]

prints one line for each program and target. Dumps in FOLDER are used again; `-v` lists the arguments that are wrong.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from programs.argument_roles import scored_arguments, share_wrong
from programs.case import ROLES
from programs.compile import Compiled, compile_case
from programs.corpus import CORPUS
from programs.peak_truth import PeakRow, PeakTruth, symbol

from tb_memplugin.model.kinds import Role
from tb_memplugin.readers.hlo import read_hlo

ROLE_OF = {name: Role[name.replace(" ", "_").upper()] for name in ROLES}


def scored_peak(proto: bytes, truth: dict[str, Any]) -> list[PeakRow]:
    """Return the rows that are live at the peak of the device's main memory, judged."""
    true = {symbol(leaf["path"]): ROLE_OF[leaf["role"]] for leaf in truth["arguments"]}
    trained = [leaf for leaf in truth["arguments"] if leaf["role"] == "parameter"]
    dimensions = [leaf[key] for leaf in trained for key in ("shape", "local_shape")]
    recording = next(r for r in read_hlo(proto, source="compiled") if r.program and r.program.memory_space == 0)
    return list(PeakTruth(proto, recording, true, dimensions).rows())


def stored_case(name: str, target: str, folder: Path) -> Compiled:
    """Return the program's dump in this folder, compiled if it is not there."""
    dumps = sorted(folder.glob("*after_optimizations.hlo.pb"), key=lambda path: path.stat().st_size)
    if not dumps or not (folder / "truth.json").exists():
        return compile_case(name, target, folder)
    return Compiled(dumps[-1].read_bytes(), json.loads((folder / "truth.json").read_text()), folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs of the corpus; all without one")
    parser.add_argument("--target", action="append", help="only these of each program's targets")
    parser.add_argument("--dumps", type=Path, help="a folder that keeps the dumps")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the arguments that are wrong")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in chosen.names or CORPUS:
            for target in CORPUS[name].targets:
                if not chosen.target or target in chosen.target:
                    compiled = stored_case(name, target, (chosen.dumps or Path(scratch)) / f"{name}-{target}")
                    show(f"{name:26} {target:6}", compiled.proto, compiled.truth, chosen.verbose)


def show(title: str, proto: bytes, truth: dict[str, Any], verbose: bool) -> None:
    """Print the score of one program."""
    arguments, rows = scored_arguments(read_hlo(proto, source="compiled"), truth), scored_peak(proto, truth)
    size, live = sum(a.bytes for a in arguments), sum(row.bytes for row in rows)
    at_peak = 100 * sum(row.bytes for row in rows if row.role not in row.right) / max(live, 1)
    print(
        f"{title} arguments {share_wrong(arguments):6.1f} % of {size / 2**20:9.1f} MiB, "
        f"peak {at_peak:6.1f} % of {live / 2**20:9.1f} MiB",
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
