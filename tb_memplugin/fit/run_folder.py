"""Candidates as runs of a logdir: a folder each, with the compiled program and its record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tb_memplugin.logdir.dump_names import is_beside_program, parse_program
from tb_memplugin.model.fit import RECORD, Candidate, Outcome, outcome_json

MAX_NAME = 150


def run_name(candidate: Candidate) -> str:
    """Return the name of a candidate's run in the logdir, such as gpt.step_v5e-4x4_remat-none_batch-172.

    Candidates have different names: one that is shortened, or has other characters, ends with a part of a hash.
    """
    knobs = (f"{name}-{value}" for name, value in candidate.knobs)
    place, _, function = candidate.step.rpartition(":")
    file = re.split(r"[/\\]", place)[-1].removesuffix(".py")
    text = "_".join((f"{file}.{function}", candidate.target.replace(":", "-"), *knobs, *candidate.changes))
    name = re.sub(r"[^\w.-]", "_", text)[:MAX_NAME]
    return name if name == text else f"{name}_{sha256(text.encode()).hexdigest()[:8]}"


def write_program(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a candidate's program, by their paths in its run, in place of those of an earlier run."""
    for old in folder.rglob("*") if folder.is_dir() else ():
        if old.is_file() and (parse_program(old.name) or is_beside_program(old.name)):
            old.unlink()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_record(outcome: Outcome, logdir: Path) -> None:
    """Write the record of an outcome beside its program."""
    folder = logdir / outcome.run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(json.dumps(outcome_json(outcome), indent=1))
