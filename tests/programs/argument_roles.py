"""Roles of a compiled program's arguments, compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from programs.peak_truth import symbol

from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording


@dataclass(frozen=True)
class Argument:
    """A leaf of a program's arguments, with its true role and the role that is shown."""

    path: str
    bytes: int
    truth: str
    role: str

    @property
    def right(self) -> bool:
        return self.truth == self.role


def scored_arguments(recordings: list[Recording], truth: dict[str, Any]) -> list[Argument]:
    """Return the arguments of a compiled program, in all of its memories, that the truth names."""
    true = {symbol(leaf["path"]): leaf for leaf in truth["arguments"]}
    return [
        Argument(path, size, true[symbol(path)]["role"], shown.name.lower().replace("_", " "))
        for recording in recordings
        for path, size, shown in argument_rows(recording)
        if symbol(path) in true
    ]


def argument_rows(recording: Recording) -> list[tuple[str, int, Role]]:
    """Return the path, size and role of each row that is an argument."""
    program = recording.program
    if program is None or program.values is None or program.value is None:
        return []
    rows, shown = recording.allocations, roles(recording)
    values = program.values()
    argument = np.flatnonzero((program.value >= 0) & (values.argument[program.value] >= 0))
    return [(rows.op_name[i], int(rows.size[i]), Role(shown[i])) for i in argument.tolist()]


def share_wrong(found: list[Argument]) -> float:
    """Return the share of argument bytes with a wrong role, in percent."""
    return 100 * sum(a.bytes for a in found if not a.right) / max(sum(a.bytes for a in found), 1)
