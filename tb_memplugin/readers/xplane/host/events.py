"""Events of a host's threads, as columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask

STEP_NUMBER, GROUP = "step_num", "group_id"  # XProf groups the events of a step
# Producer type and id, consumer type and id: a producer on one thread and its consumer on another have equal pairs.
LINKS = ("_pt", "_p", "_ct", "_c")
RUN, DRIVER_CALL = "run_id", "correlation_id"  # an execution of a program, a call of the accelerator's driver
PYTHON_FRAME = re.compile(r"\$(.+):(\d{1,18}) (.+)", re.DOTALL)
JITTED = re.compile(r"PjitFunction\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class HostEvents:
    """All events of a host, line by line. `kind` indexes `names`; -1 is an event without a name."""

    names: list[str]
    kind: I32
    start_ps: I64
    stop_ps: I64
    parent: I32  # the enclosing event of the same line; -1 none
    line_events: I64  # events per line, that is, per thread
    stats: dict[str, tuple[I32, I64]]  # by stat name: the events that have the stat, and its values

    def of_kinds(self, kinds: Iterable[int]) -> Mask:
        """Return a mask of the events of these kinds."""
        flags = np.zeros(len(self.names) + 1, dtype=bool)  # the last entry is for kind -1
        flags[list(kinds)] = True
        mask: Mask = flags[self.kind]
        return mask

    def having_any(self, *stats: str) -> Mask:
        """Return a mask of the events that have any of these stats."""
        mask = np.zeros(len(self.kind), dtype=bool)
        for name in stats:
            mask[self.stats[name][0]] = True
        return mask
