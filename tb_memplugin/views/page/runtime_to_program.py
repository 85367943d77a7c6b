"""The allocations of compiled programs in a runtime's memory, and the programs that run at a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.isolate import usable
from tb_memplugin.analysis.linking.runtime_to_program import link_to_programs, running_intervals, running_programs
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import PROGRAMS, RECORDING, Integer, last_position


class AmountJson(TypedDict):
    """A number of allocations, and their bytes."""

    allocations: int
    bytes: int


class LinkedProgramJson(AmountJson):
    """The allocations of one program's executions; `running` is about the requested position."""

    recording: str
    title: str
    memory: str
    running: bool


class RuntimeToProgramJson(TypedDict):
    """The allocations of programs' executions over all events, and the programs that run at one position."""

    at: int
    executable: AmountJson
    unjoined: AmountJson
    """Those of `executable` that match no planned memory."""
    programs: list[LinkedProgramJson]


class AllRuntimeToProgramJson(TypedDict):
    """The answers of all positions: number `answer[i]` is that of the positions from `start[i]` on."""

    start: list[int]
    answer: list[int]
    answers: list[RuntimeToProgramJson]


def _of_every_position(recording: Recording, programs: Sequence[Recording]) -> AllRuntimeToProgramJson:
    """Return each distinct answer once: number `answer[i]` is that of the positions from `start[i]` on."""
    programs, _ = usable(programs, lambda some: running_intervals(recording, some))
    stretches = running_intervals(recording, programs)
    first: dict[tuple[int, ...], int] = {}  # the first position at which each set of programs runs, in that order
    for position, now in stretches:
        first.setdefault(tuple(now), position)
    numbers = {now: number for number, now in enumerate(first)}
    return {
        "start": [position for position, _ in stretches],
        "answer": [numbers[tuple(now)] for _, now in stretches],
        "answers": [joins(recording, programs, position) for position in first.values()],
    }


@endpoint(
    "joins",
    RECORDING,
    PROGRAMS,
    Integer("at", -1, last_position),
    report=InReport(lambda recording: recording.axis is Axis.TIME, every=_of_every_position),
)
def joins(recording: Recording, programs: Sequence[Recording], position: int) -> RuntimeToProgramJson:
    """Return the allocations of programs' executions, and those that match no planned memory.

    The programs in the answer are those with a matching allocation, the most bytes first, and those that run at the
    position. A program with several memories and no matching allocation is listed once.
    """
    programs, _ = usable(programs, lambda some: link_to_programs(recording, some))
    joined = link_to_programs(recording, programs)
    size = recording.allocations.size

    def both(which: npt.NDArray[np.bool_]) -> AmountJson:
        return {"allocations": int(which.sum()), "bytes": int(size[which].sum())}

    now = running_programs(recording, programs, position)
    listed = set(np.unique(joined.program[joined.program >= 0]).tolist())
    titles = {programs[number].title for number in listed}
    for number in now:
        if programs[number].title not in titles:
            titles.add(programs[number].title)
            listed.add(number)
    found: list[LinkedProgramJson] = [
        {
            "recording": program.id,
            "title": program.title,
            "memory": program.memory,
            "running": number in now,
            **both(joined.program == number),
        }
        for number, program in enumerate(programs)
        if number in listed
    ]
    return {
        "at": position,
        "executable": both(joined.executable),
        "unjoined": both(joined.executable & (joined.program < 0)),
        "programs": sorted(found, key=lambda program: -program["bytes"]),
    }
