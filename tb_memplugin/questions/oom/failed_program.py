"""The program that an out-of-memory error names: its dumps in the logdir, and the changes with which it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.out_of_memory import DUMP_FLAGS
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import OUTLINE, RECORDINGS, RUNS
from tb_memplugin.questions.asking.json_types import SummaryJson
from tb_memplugin.questions.asking.source import Recordings, Runs
from tb_memplugin.questions.oom.hints import lacks_buffers
from tb_memplugin.questions.oom.ledger import HolderJson, ledger_of
from tb_memplugin.questions.recording.advice import advice, fits_with_text
from tb_memplugin.questions.recording.summary import summary

MAX_PROGRAMS = 4
ROUNDING = 100  # compilers print the needed bytes with an error of at most a hundredth


class FailedProgramJson(TypedDict):
    """The programs that an error may be about, and the changes with which the likeliest fits."""

    programs: list[SummaryJson]
    """The programs of the logdir that the error may be about, the likeliest first."""
    fits_with: str | None
    """The smallest set of changes with which the first of them fits its memory, or the largest if none is enough, in a
    sentence; null if it fits, its limit is unknown, or there is none."""
    recipe: str | None
    """The setting that makes XLA write the program with its buffers; null if one is known, or the error names none."""


class FailureInLogdirJson(FailedProgramJson):
    """An error with its program and its ledger, as far as the logdir has them."""

    ledger: list[HolderJson]
    """The holders of the memory, where the text has the start-up lines of an inference engine."""


def named_program(recording: Recording) -> str:
    """Return the program that an error names without its buffers; empty for other recordings."""
    failure = recording.out_of_memory
    return failure.program if failure is not None and not len(recording.allocations) else ""


@endpoint("failed_program", OUTLINE, RECORDINGS, RUNS, report=InReport(lambda error: error.kind.is_failure))
def failed_program_in_logdir(recording: Recording, source: Recordings, runs: Runs) -> FailureInLogdirJson:
    """Return the programs that an error without buffers may be about, the changes with which it fits, and a ledger."""
    name = named_program(recording)
    programs = source.programs([name]) if name else ()
    found = failed_program(recording, programs, runs.fit().outcomes if programs else ())
    return {**found, "ledger": ledger_of(recording, source.run_of(recording))}


def failed_program(
    error: Recording, others: Sequence[Recording], outcomes: Sequence[Outcome] = ()
) -> FailedProgramJson:
    """Return the answer about the program of an error: `others` may be it; `outcomes` are the candidates of fits."""
    found = programs_of(error, others)
    changes, _ = each(found[:1], lambda program: advice(program, outcomes))
    return {
        "programs": [summary(program.outline) for program in found],
        "fits_with": next((fits_with_text(change) for change in changes if change["fits_with"] is not None), None),
        "recipe": DUMP_FLAGS if named_program(error) and lacks_buffers(error) and not found else None,
    }


def programs_of(error: Recording, others: Sequence[Recording]) -> list[Recording]:
    """Return the programs with the name in an error that need as much as it states, else all; the likeliest first.

    Each is the recording of the memory that was too small, or if there are none, of the program's main memory. The list
    is empty for an error with its buffers, and for other recordings.
    """
    name = named_program(error)
    if error.out_of_memory is None or not name:
        return []
    asked = error.out_of_memory.asked
    named = [other for other in others if other.program is not None and other.program.module == name]
    found = [p for p in named if p.memory == error.memory] or [p for p in named if p.is_main_memory]
    found, _ = each(found, lambda program: (reserved_bytes(program), program)[1])
    needs = {program.id: abs(reserved_bytes(program) - (asked or 0)) for program in found}
    exact = [program for program in found if asked and ROUNDING * needs[program.id] <= asked]
    ordered = sorted(exact or found, key=lambda program: (program.run != error.run, needs[program.id], program.id))
    return ordered[:MAX_PROGRAMS]
