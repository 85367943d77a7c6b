"""The allocations of compiled programs in a runtime's memory, and the programs that run at a position."""

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.isolate import usable
from tb_memplugin.analysis.linking import (
    count_runs,
    link_to_programs,
    run_count,
    running_intervals,
    running_programs,
    stack_of_program,
)
from tb_memplugin.model.arrays import Mask
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import PROGRAMS, RECORDING, Integer, last_position
from tb_memplugin.questions.records import record

MAX_STACKS = 1000  # in a report; a TPU has a few. Reports of more have none


class AmountJson(TypedDict):
    """A number of allocations, and their bytes."""

    allocations: int
    """The number of allocations."""
    bytes: int
    """Their bytes."""


class ProgramNameJson(TypedDict):
    """A program in one memory."""

    recording: str
    """The id of the program's recording."""
    title: str
    """Its title."""
    memory: str
    """Its memory."""


class LinkedProgramJson(AmountJson, ProgramNameJson):
    """A program that ran or whose planned memory was allocated; `running` is about the requested position."""

    running: bool
    """True if it runs at the position."""
    runs: int | None
    """The number of its runs in the profile; null if executions are not recorded."""


class StackJson(ProgramNameJson):
    """The stack that is reserved at the requested position, and the program whose temporaries it holds."""

    bytes: int
    """The size of the stack."""
    temporary_bytes: int
    """Its temporaries, which the stack holds."""


class RuntimeToProgramJson(TypedDict):
    """The allocations of programs' executions over all events, and the programs that run at one position."""

    at: int
    """The position."""
    executable: AmountJson
    """Allocations that contain executables."""
    unjoined: AmountJson
    """Allocations that match no known program."""
    programs: list[LinkedProgramJson]
    """The programs with live allocations, and those that ran in the profile."""
    stack: StackJson | None
    """The stack of a TPU, where it holds the temporaries of a known program."""


class AllRuntimeToProgramJson(TypedDict):
    """The answers of all positions: number `answer[i]` is that of the positions from `start[i]` on."""

    start: list[int]
    answer: list[int]
    answers: list[RuntimeToProgramJson]


class _Linked:
    """An allocator's links to programs, which all positions share."""

    def __init__(self, recording: Recording, programs: Sequence[Recording]) -> None:
        self.recording, self.programs = recording, programs
        self.stack = stack_of_program(recording, programs)
        joined, size = link_to_programs(recording, programs), recording.allocations.size

        def both(which: Mask) -> AmountJson:
            return {"allocations": int(which.sum()), "bytes": int(size[which].sum())}

        self._executable = both(joined.executable)
        self._unjoined = both(joined.executable & (joined.program < 0))
        self._amounts = [both(joined.program == number) for number in range(len(programs))]
        runs = count_runs([recording])
        self._runs = [run_count(program.title, runs) for program in programs]
        allocating = [number for number, amount in enumerate(self._amounts) if amount["allocations"]]
        ran = [number for number, count in enumerate(self._runs) if count]
        self._listed = self._with_titles(allocating, ran)

    def answer(self, position: int) -> RuntimeToProgramJson:
        now = running_programs(self.recording, self.programs, position)
        found = [
            record(
                LinkedProgramJson,
                self._amounts[number],
                self.programs[number],
                recording=self.programs[number].id,
                running=number in now,
                runs=self._runs[number],
            )
            for number in sorted(self._with_titles(self._listed, now))
        ]
        return {
            "at": position,
            "executable": self._executable,
            "unjoined": self._unjoined,
            "programs": sorted(found, key=lambda program: (-program["bytes"], -(program["runs"] or 0))),
            "stack": self._stack_at(position),
        }

    def _with_titles(self, listed: Sequence[int], more: Sequence[int]) -> list[int]:
        """Return the listed programs, and more of those of other titles: a program has a recording for each memory."""
        by_title = {self.programs[number].title: number for number in reversed(more)}
        titles = {self.programs[number].title for number in listed}
        return [*listed, *(number for title, number in by_title.items() if title not in titles)]

    def _stack_at(self, position: int) -> StackJson | None:
        number = int(self.stack.program[position]) if 0 <= position < len(self.stack.program) else -1
        if number < 0:
            return None
        return record(
            StackJson,
            self.programs[number],
            recording=self.programs[number].id,
            bytes=int(self.stack.stack[position]),
            temporary_bytes=int(self.stack.temporary[number]),
        )


def _of_every_position(recording: Recording, programs: Sequence[Recording]) -> AllRuntimeToProgramJson:
    """Return each distinct answer once: number `answer[i]` is that of the positions from `start[i]` on."""
    programs, _ = usable(programs, lambda some: running_intervals(recording, some))
    linked = _Linked(recording, programs)
    if len(np.unique(linked.stack.stack)) > MAX_STACKS:
        linked.stack = linked.stack._replace(program=np.full_like(linked.stack.program, -1))
    stretches = list(_stretches(linked))
    # The first position at which each set of programs runs, in that order, and each stack is reserved.
    first: dict[tuple[tuple[int, ...], int], int] = {}
    for position, state in stretches:
        first.setdefault(state, position)
    numbers = {state: number for number, state in enumerate(first)}
    return {
        "start": [position for position, _ in stretches],
        "answer": [numbers[state] for _, state in stretches],
        "answers": [linked.answer(position) for position in first.values()],
    }


def _stretches(linked: _Linked) -> Iterator[tuple[int, tuple[tuple[int, ...], int]]]:
    """Yield each position where the running programs or the explained stack change, with both from there on."""
    running = running_intervals(linked.recording, linked.programs)
    starts = np.array([position for position, _ in running])
    # Before the first event, no stack is known.
    stack = np.where(linked.stack.program >= 0, linked.stack.stack, 0)
    for position in np.union1d(starts, np.flatnonzero(np.diff(stack, prepend=0))).tolist():
        now = running[int(np.searchsorted(starts, position, "right")) - 1][1]
        yield position, (tuple(now), int(stack[position]) if 0 <= position < len(stack) else 0)


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
    return _Linked(recording, programs).answer(position)
