"""Candidates as runs of a logdir: a folder each, with the compiled program and its record."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tb_memplugin.model.fit import RECORD, Candidate, Outcome
from tb_memplugin.readers.fit_record import outcome_json

MAX_NAME = 200


def run_name(candidate: Candidate) -> str:
    """Return the name of a candidate's run in the logdir, such as step_v5e_4x4_batch-172_remat-none."""
    knobs = (f"{name}-{value}" for name, value in candidate.knobs)
    step = candidate.step.rpartition(":")[2]
    text = "_".join((step, candidate.target, *knobs, *candidate.changes))
    return re.sub(r"[^\w.-]", "_", text)[:MAX_NAME]


def write_record(outcome: Outcome, folder: Path) -> None:
    """Write the record of an outcome beside its program."""
    (folder / RECORD).write_text(json.dumps(outcome_json(outcome), indent=1))
