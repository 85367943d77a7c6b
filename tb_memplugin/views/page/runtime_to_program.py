"""The allocations of compiled programs in a runtime's memory, and the programs that run at a position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.isolate import usable
from tb_memplugin.analysis.linking.executions import count_runs, run_count
from tb_memplugin.analysis.linking.runtime_to_program import link_to_programs, running_intervals, running_programs
from tb_memplugin.analysis.linking.stack_of_program import stack_of_program
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import PROGRAMS, RECORDING, Integer, last_position

MAX_STACKS = 1000  # changes of the stack in a report; a TPU has a few


class AmountJson(TypedDict):
    """A number of allocations, and their bytes."""

    allocations: int
    bytes: int


class LinkedProgramJson(AmountJson):
    """A program that ran or whose planned memory was allocated; `running` is about the requested position."""

    recording: str
    title: str
    memory: str
    running: bool
    runs: int | None
    """Executions in the profile; null if the profile records none."""


class StackJson(TypedDict):
    """The stack that is reserved at the requested position, and the program whose temporaries it holds."""

    bytes: int
    recording: str
    title: str
    memory: str
    temporary_bytes: int


class RuntimeToProgramJson(TypedDict):
    """The allocations of programs' executions over all events, and the programs that run at one position."""

    at: int
    executable: AmountJson
    unjoined: AmountJson
    """Those of `executable` that match no planned memory."""
    programs: list[LinkedProgramJson]
    stack: StackJson | None
    """Null without a stack, or if no program explains it."""


class AllRuntimeToProgramJson(TypedDict):
    """The answers of all positions: number `answer[i]` is that of the positions from `start[i]` on."""

    start: list[int]
    answer: list[int]
    answers: list[RuntimeToProgramJson]


def _of_every_position(recording: Recording, programs: Sequence[Recording]) -> AllRuntimeToProgramJson:
    """Return each distinct answer once: number `answer[i]` is that of the positions from `start[i]` on."""
    programs, _ = usable(programs, lambda some: running_intervals(recording, some))
    stretches = [(position, (tuple(now), stack)) for position, now, stack in _stretches(recording, programs)]
    # The first position at which each set of programs runs, in that order, and at which each stack is reserved.
    first: dict[tuple[tuple[int, ...], int], int] = {}
    for position, state in stretches:
        first.setdefault(state, position)
    numbers = {state: number for number, state in enumerate(first)}
    return {
        "start": [position for position, _ in stretches],
        "answer": [numbers[state] for _, state in stretches],
        "answers": [joins(recording, programs, position) for position in first.values()],
    }


def _stretches(recording: Recording, programs: Sequence[Recording]) -> Iterator[tuple[int, list[int], int]]:
    """Yield each position where the running programs or the stack change, with both from there on."""
    running = running_intervals(recording, programs)
    reserved = recording.reported.reserved if recording.reported is not None else np.empty(0, np.int64)
    changes = np.flatnonzero(np.diff(reserved)) + 1
    changes = np.r_[0, changes] if 0 < len(reserved) and len(changes) < MAX_STACKS else changes[:0]
    starts = np.array([position for position, _ in running])
    for position in np.union1d(starts, changes).tolist():
        now = running[int(np.searchsorted(starts, position, "right")) - 1][1]
        yield position, now, int(reserved[position]) if len(changes) and position >= 0 else 0


@endpoint(
    "joins",
    RECORDING,
    PROGRAMS,
    Integer("at", -1, last_position),
    report=InReport(lambda recording: recording.axis is Axis.TIME, every=_of_every_position),
)
def joins(recording: Recording, programs: Sequence[Recording], position: int) -> RuntimeToProgramJson:
    """Return the allocations of programs' executions, and those that match no planned memory.

    The programs in the answer are those with a matching allocation, the most bytes first, and those that ran in the
    profile: on TPU, the runtime allocates nothing for them. A program with several memories and no matching allocation
    is listed once.
    """
    programs, _ = usable(programs, lambda some: link_to_programs(recording, some))
    joined = link_to_programs(recording, programs)
    size = recording.allocations.size

    def both(which: npt.NDArray[np.bool_]) -> AmountJson:
        return {"allocations": int(which.sum()), "bytes": int(size[which].sum())}

    now = running_programs(recording, programs, position)
    listed = set(np.unique(joined.program[joined.program >= 0]).tolist())
    titles = {programs[number].title for number in listed}
    runs = count_runs([recording])
    ran = (number for number, program in enumerate(programs) if run_count(program.title, runs))
    for number in (*now, *ran):
        if programs[number].title not in titles:
            titles.add(programs[number].title)
            listed.add(number)
    found: list[LinkedProgramJson] = [
        {
            "recording": program.id,
            "title": program.title,
            "memory": program.memory,
            "running": number in now,
            "runs": run_count(program.title, runs),
            **both(joined.program == number),
        }
        for number, program in enumerate(programs)
        if number in listed
    ]
    return {
        "at": position,
        "executable": both(joined.executable),
        "unjoined": both(joined.executable & (joined.program < 0)),
        "programs": sorted(found, key=lambda program: (-program["bytes"], -(program["runs"] or 0))),
        "stack": _stack(recording, programs, position),
    }


def _stack(recording: Recording, programs: Sequence[Recording], position: int) -> StackJson | None:
    found = stack_of_program(recording, programs, position)
    if found is None:
        return None
    program = programs[found.program]
    return {
        "bytes": found.bytes,
        "recording": program.id,
        "title": program.title,
        "memory": program.memory,
        "temporary_bytes": found.temporary,
    }
