"""All that a host's threads did, event by event."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64

STEP_NUMBER, GROUP = "step_num", "group_id"  # a group is a step, as XProf finds them
# A producer on one thread and its consumer on another carry the same pair of a type and an id.
LINKS = ("_pt", "_p", "_ct", "_c")
RUN, DRIVER_CALL = "run_id", "correlation_id"  # of a program, and of the accelerator's driver
PYTHON_FRAME = re.compile(r"\$(.+):(\d+) (.+)", re.DOTALL)
JITTED = re.compile(r"PjitFunction\((.+)\)", re.DOTALL)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class HostEvents:
    """Every event of a host, line by line: its kind is its place among `names`, -1 where it has none."""

    names: list[str]
    kind: I32
    start_ps: I64
    stop_ps: I64
    parent: I32  # the event of the same line that encloses it, -1 where none does
    line_events: I64  # how many are on each line: the thread
    stats: dict[str, tuple[I32, I64]]  # the events that have a number, and the number

    def of_kinds(self, chosen: Iterable[int]) -> Mask:
        """Which events are of the chosen kinds."""
        flags = np.zeros(len(self.names) + 1, dtype=bool)  # the last is of those without a name
        flags[list(chosen)] = True
        mask: Mask = flags[self.kind]
        return mask

    def having(self, *stats: str) -> Mask:
        """Which events have any of these numbers."""
        mask = np.zeros(len(self.kind), dtype=bool)
        for name in stats:
            mask[self.stats[name][0]] = True
        return mask
