"""The records of a logdir's fits: what compiling each candidate gave, without its program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tb_memplugin import logdir
from tb_memplugin.catalog.listing import Problem
from tb_memplugin.catalog.reading import read_once
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.fit import Outcome
from tb_memplugin.readers.fit_record import read_outcome
from tb_memplugin.sizes import agree, counted

# A record takes 2 KB, and one with the traceback of a user's code 20 KB.
MAX_RECORD_BYTES = 1 << 20
MAX_BYTES = 32 << 20
MAX_RECORDS = 5000


@dataclass(frozen=True, slots=True)
class FitRecords:
    """Outcomes of candidates, each with the name of its run in the logdir, and the records that cannot be read."""

    outcomes: tuple[Outcome, ...] = ()
    problems: tuple[Problem, ...] = ()
    programs: frozenset[str] = frozenset()  # names of runs that contain the program too


def records_of_path(path: str) -> FitRecords:
    """Read the records of a logdir or a run's folder. A file has no records. InputError where it cannot be opened."""
    if not logdir.is_remote(path) and not os.path.isdir(path):
        return FitRecords()
    runs = logdir.find_all(path)
    return read_records(runs)


def read_records(runs: Sequence[Run]) -> FitRecords:
    """Read the records of those runs that have one. Damaged ones are problems beside the others."""
    records = [(run.name, run.record) for run in runs if run.record is not None]
    outcomes: list[Outcome] = []
    problems: list[Problem] = []
    size = 0
    for number, (run, file) in enumerate(records):
        size += file.size
        if number == MAX_RECORDS or size > MAX_BYTES:
            left = len(records) - number
            text = f"{counted(left, 'more candidate')} {agree(left, 'is', 'are')} not listed: open a part of the logdir"
            problems.append(Problem(file.path, text))
            break
        found = _read(file)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            outcomes.append(replace(found, run=run))
    programs = frozenset(run.name for run in runs if run.record is not None and run.files)
    return FitRecords(tuple(outcomes), tuple(problems), programs)


def _problem(file: HostFile, error: InputError) -> Outcome | Problem:
    return Problem(file.path, f"{error.what}: {error.remedy}", isinstance(error, ReadError))


@read_once(_problem)
def _read(file: HostFile) -> Outcome | Problem:
    if file.size > MAX_RECORD_BYTES:
        return Problem(file.path, "Not a record of a fit: it is too large. Delete the file")
    # Not the whole file, which may have grown.
    return read_outcome(bytes(logdir.read_bytes(file, MAX_RECORD_BYTES)), file.path)
