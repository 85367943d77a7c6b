"""Stored programs that differ by one change, as logdirs."""

from __future__ import annotations

import gzip
from pathlib import Path

from support.servers import TESTS

CHANGED = TESTS / "data" / "changed_programs"  # of tests/programs/changed_pairs.py


def changed_program(name: str, target: str = "v5e") -> bytes:
    """Return XLA's dump of a program."""
    return gzip.decompress((CHANGED / f"{name}.{target}.hlo.pb.gz").read_bytes())


def changed_logdir(name: str, folder: Path) -> Path:
    """Write XLA's dump of a program into a folder below `folder`, and return that."""
    logdir = folder / name
    logdir.mkdir(parents=True, exist_ok=True)
    (logdir / "module_0012.jit_step.tpu_comp_after_optimizations.hlo.pb").write_bytes(changed_program(name))
    return logdir
