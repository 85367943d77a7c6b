"""What had to be guessed about a program, in words for the page and the terminal."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.readers.hlo.lifetimes.placement import Placement
from tb_memplugin.readers.hlo.lifetimes.schedule import Schedule
from tb_memplugin.readers.hlo.module import Module


def caveats(module: Module, schedule: Schedule, placement: Placement, rows: I64) -> tuple[Caveat, ...]:
    """What had to be guessed, for the rows of one memory space."""
    found = []
    rebuilt = rows[placement.rebuilt[rows]]
    if len(rebuilt):
        claimed = np.bincount(placement.region[rebuilt], placement.size[rebuilt], len(placement.region_kind))
        found.append(
            Caveat(
                "lifetimes_rebuilt",
                f"The compiler left no trace of when {len(rebuilt)} temporary buffers live. Their lifetimes are "
                "rebuilt from the schedule, the uses and the aliases, so live bytes are close but not the compiler's.",
                int(np.minimum(claimed, module.allocations["size"]).sum()),
            )
        )
    if not schedule.from_file:
        found.append(
            Caveat(
                "no_schedule", "The program has no schedule; its instructions are taken in the order they are listed."
            )
        )
    lost = rows[placement.buffer[rows] < 0]
    if len(lost):
        found.append(
            Caveat(
                "unknown_buffers",
                f"{len(lost)} buffers are placed but not described; they are taken to live all along.",
                int(placement.size[lost].sum()),
            )
        )
    described = rows[placement.buffer[rows] >= 0]
    missing = described[module.buffer_instruction[placement.buffer[described]] < 0] if len(described) else described
    if len(missing):
        found.append(
            Caveat(
                "unknown_instructions",
                f"{len(missing)} buffers name instructions that the program lacks; they are taken to live all along.",
                int(placement.size[missing].sum()),
            )
        )
    if placement.odd_events:
        found.append(
            Caveat(
                "odd_events", f"{placement.odd_events} events of the compiler's trace make no sense and are left out."
            )
        )
    if placement.conflicts:
        found.append(
            Caveat(
                "reused_early",
                f"{placement.conflicts} buffers are overwritten while our reading of the program still needs them; "
                "each is taken to end there.",
            )
        )
    return tuple(found)
