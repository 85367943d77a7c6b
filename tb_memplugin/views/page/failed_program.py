"""The compiled program that an out-of-memory error names, where a dump of it exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import OUTLINE, SOURCE
from tb_memplugin.views.endpoints.source import Source
from tb_memplugin.views.shared.json_types import SummaryJson
from tb_memplugin.views.shared.oom_hints import DUMP_FLAGS, lacks_buffers
from tb_memplugin.views.shared.summary import summary

MAX_PROGRAMS = 4
ROUNDING = 100  # compilers print what is needed to within a hundredth


class FailedProgramJson(TypedDict):
    """The program in the memory that was too small, or in its main memory; of several, the likeliest first."""

    programs: list[SummaryJson]
    recipe: str | None
    """The setting that makes XLA write the program with its buffers; null if one is known, or the error names none."""


def names_program(recording: Recording) -> bool:
    """Return whether the recording is of an error that names a program, without its buffers."""
    failure = recording.out_of_memory
    return failure is not None and bool(failure.program) and not len(recording.allocations)


@endpoint("failed_program", OUTLINE, SOURCE, report=InReport(names_program))
def failed_program(recording: Recording, source: Source) -> FailedProgramJson:
    """Return the programs of the name in an error without buffers: those that need as much, or else all of the name."""
    failure = recording.out_of_memory
    if failure is None or not names_program(recording):
        return {"programs": [], "recipe": None}
    found = likely_programs(recording, source.programs([failure.program]))
    recipe = DUMP_FLAGS if lacks_buffers(recording) and not found else None
    return {"programs": [summary(program.outline) for program in found], "recipe": recipe}


def programs_of(error: Recording, others: Sequence[Recording]) -> list[Recording]:
    """Return the likely programs of an error that names one without its buffers; none of other recordings."""
    failure = error.out_of_memory
    if failure is None or not names_program(error):
        return []
    return likely_programs(error, [r for r in others if r.program is not None and r.program.module == failure.program])


def likely_programs(error: Recording, named: Sequence[Recording]) -> list[Recording]:
    """Return those of the programs of the name in an error that need as much, or else all; the likeliest first.

    Programs are those in the memory that was too small, or in their main memory.
    """
    asked = error.out_of_memory.asked if error.out_of_memory is not None else None
    found = [p for p in named if p.memory == error.memory] or [p for p in named if p.is_main_memory]
    found, _ = each(found, lambda program: (reserved_bytes(program), program)[1])
    needs = {program.id: abs(reserved_bytes(program) - (asked or 0)) for program in found}
    exact = [program for program in found if asked and ROUNDING * needs[program.id] <= asked]
    ordered = sorted(exact or found, key=lambda program: (program.run != error.run, needs[program.id], program.id))
    return ordered[:MAX_PROGRAMS]
