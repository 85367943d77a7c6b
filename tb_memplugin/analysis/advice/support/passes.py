"""A program as passes and layers: who makes and reads its rows, forward or backward, and in which layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.dataflow.graph import dataflow_graph, uses
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.model_paths import OpPath, Pass, op_path
from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

Bools = npt.NDArray[np.bool_]
PASSES = tuple(Pass)
NUMBERED = re.compile(r"\d+")


@dataclass(frozen=True)
class Layers:
    """What the program does several times over: scopes that differ by a number only, `layer_*`, or turns of a loop."""

    name: str
    several: str  # how many, and of what
    function: str  # to wrap, and what that is
    comment: str
    count: int
    instance: I32  # per position: which one it belongs to, -1 none


class ProgramPasses:
    """One program, seen from one memory space; programs that train nothing have one pass."""

    def __init__(self, recording: Recording, values: DataflowValues, value: I32, scope: Text) -> None:
        self.values = values
        self.value = value  # per row
        self.scope = scope  # per position
        self.length = recording.length
        begin, read_at = uses(recording)
        self.uses = np.repeat(np.arange(len(value)), np.diff(begin)), read_at.astype(np.int64)  # (row, position)

    @cached_property
    def paths(self) -> list[OpPath]:
        """Per distinct op_name of the schedule, and for none."""
        return [op_path(self.scope.strings[code]) for code in range(len(self.scope.strings))] + [op_path("")]

    @cached_property
    def pass_of_position(self) -> U8:
        """Per position: which of PASSES its name puts it in."""
        return np.array([PASSES.index(path.training_pass) for path in self.paths], dtype=np.uint8)[self.scope.codes]

    def within(self, which: Pass) -> Bools:
        """Per position."""
        inside: Bools = self.pass_of_position == PASSES.index(which)
        return inside

    @cached_property
    def operation(self) -> list[str]:
        """Per distinct op_name, and for none: the last part."""
        return [path.parts[-1] if path.parts else "" for path in self.paths]

    def does(self, *operations: str) -> Bools:
        """Per position: whether it is one of these operations."""
        wanted: Bools = np.array([name in operations for name in self.operation])[self.scope.codes]
        return wanted

    @cached_property
    def made(self) -> I64:
        """Per row: the position that makes it; -1 unknown."""
        return np.where(self.value >= 0, self.values.producer[self.value], -1).astype(np.int64)

    @cached_property
    def is_argument(self) -> Bools:
        """Per row: whether it is one, and so there all along."""
        found: Bools = (self.value >= 0) & (self.values.argument[self.value] >= 0)
        return found

    def last_use(self, among: Bools) -> I64:
        """Per row: the last position, of those `among`, that reads it; -1 where none does."""
        row, position = self.uses
        found = np.full(len(self.value), -1, dtype=np.int64)
        chosen = among[position]
        np.maximum.at(found, row[chosen], position[chosen])
        return found

    def first_use(self, among: Bools) -> I64:
        """Per row: the first such position; the program's length where none does."""
        row, position = self.uses
        found = np.full(len(self.value), self.length, dtype=np.int64)
        chosen = among[position]
        np.minimum.at(found, row[chosen], position[chosen])
        return found

    @cached_property
    def layers(self) -> list[Layers]:
        """Families of at least two scopes that differ by a number, of outer scopes only."""
        families: dict[str, dict[str, list[int]]] = {}
        for code, path in enumerate(self.paths):
            for depth, part in enumerate(path.parts[:-1]):
                if NUMBERED.search(part):
                    prefix = "/".join(path.parts[: depth + 1])
                    merged = NUMBERED.sub("*", prefix)
                    families.setdefault(merged, {}).setdefault(prefix, []).append(code)
                    break
        found = []
        for merged, members in families.items():
            if len(members) > 1:
                instance = np.full(len(self.paths), -1, dtype=np.int32)
                for number, codes in enumerate(members.values()):
                    instance[codes] = number
                several, comment = f"{len(members)} {merged}", f"the function that makes one {merged}"
                found.append(Layers(merged, several, "layer", comment, len(members), instance[self.scope.codes]))
        return found


@memoize
def program_passes(recording: Recording) -> ProgramPasses | None:
    """None where nothing is known of who reads what."""
    known, program = dataflow_graph(recording), recording.program
    if known is None or program is None or program.value is None:
        return None
    return ProgramPasses(recording, known.values, program.value, program.scope)
