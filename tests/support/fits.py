"""Logdirs of fits: a folder for each candidate, with its record and, where it was compiled, a program of the demo."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from support.servers import DEMO

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.fit.compiling.program_memory import with_memory
from tb_memplugin.fit.sweep import run_name, write_record
from tb_memplugin.model.fit import Candidate, Outcome, outcome_json

STEP = "fit_gpt.py:step"
GIB = 1 << 30
V5E = 15 * GIB + 768 * (1 << 20)
VERSIONS = {"jax": "0.12.0.1", "libtpu": "0.0.52"}
ERROR = "ValueError: the batch must be divisible by the number of devices"
TRACEBACK = (
    f'Traceback (most recent call last):\n  File "fit_gpt.py", line 12, in step\n    raise ValueError\n{ERROR}\n'
)


def candidate(target: str = "v5e:2x2", changes: tuple[str, ...] = (), step: str = STEP, **knobs: str | int) -> Outcome:
    """Return a candidate before it is compiled, whose batch is searched if it has one."""
    searched = "batch" if "batch" in knobs else ""
    return Outcome(
        Candidate(step, target, tuple(knobs.items()), changes),
        seconds=2.5,
        capacity_bytes=V5E,
        limit_bytes=V5E,
        searched=searched,
        versions=VERSIONS,
    )


def reserving(outcome: Outcome, gib: float, rematerialized: int = 0) -> Outcome:
    """Return the candidate as compiled, with a quarter of its peak in parameters."""
    size = int(gib * GIB)
    roles = {"activation": size - size // 4, "parameter": size // 4}
    return replace(
        outcome,
        reserved_bytes=size + (64 << 20),
        peak_bytes=size,
        rematerialized=rematerialized,
        rematerialized_flops=0.01 * rematerialized,
        roles=roles,
    )


def raised(outcome: Outcome) -> Outcome:
    return replace(outcome, error=ERROR, traceback=TRACEBACK, seconds=1.0)


def write_candidate(logs: Path, outcome: Outcome) -> Path:
    """Write a candidate's record alone."""
    folder = logs / run_name(outcome.candidate)
    write_record(replace(outcome, run=folder.name), logs)
    return folder


def write_program(logs: Path, outcome: Outcome, demo: str) -> Outcome:
    """Write a candidate with the compiled program of a demo run, and the figures that a fit takes from it."""
    folder = logs / run_name(outcome.candidate)
    shutil.copytree(DEMO / demo, folder, ignore=shutil.ignore_patterns("*.oom.txt"))
    program = next(recording for recording in listing_of_path(str(folder)).recordings if recording.is_main_memory)
    found = replace(with_memory(outcome, program), run=folder.name)
    write_record(found, logs)
    return found


def write_search(logs: Path) -> list[Outcome]:
    """Write a search: two choices with a program each and values around them, a change, and one that raised."""
    none, full = candidate(remat="none", batch=172), candidate(remat="full", batch=280)
    found = [write_program(logs, none, "v5e_train_step"), write_program(logs, full, "v5e_out_of_memory")]
    others = [
        reserving(candidate(remat="none", batch=8), 5.0),
        reserving(candidate(remat="none", batch=48), 12.0),
        reserving(candidate(remat="none", batch=176), 15.9, 71),
        reserving(candidate(remat="full", batch=8), 3.0),
        reserving(candidate(remat="none", batch=190, changes=("donate:state",)), 15.1),
        raised(candidate(remat="dots", batch=7)),
    ]
    for outcome in others:
        write_candidate(logs, outcome)
    return [*found, *others]


def record_text(**changed: object) -> str:
    """Return the text of a valid record with other values of some keys."""
    return json.dumps({**outcome_json(reserving(candidate(remat="none", batch=8), 5.0)), **changed})
