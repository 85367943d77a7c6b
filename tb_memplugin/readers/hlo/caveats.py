"""Caveats about assumptions in reading a program."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.readers.hlo.lifetimes.placement import Placement
from tb_memplugin.readers.hlo.module.schedule import Schedule
from tb_memplugin.readers.hlo.module.tables import HloModule


def caveats(module: HloModule, schedule: Schedule, placement: Placement, rows: I64) -> tuple[Caveat, ...]:
    """Return the caveats that concern `rows`, those of one memory space."""
    found = []
    rebuilt = rows[placement.rebuilt[rows]]
    if len(rebuilt):
        rebuilt_bytes = np.bincount(placement.region[rebuilt], placement.size[rebuilt], len(placement.region_kind))
        found.append(
            Caveat(
                CaveatCode.LIFETIMES_REBUILT,
                f"The compiler's trace lacks the lifetimes of {len(rebuilt):,} temporary buffers. They are "
                "reconstructed from the schedule, uses and aliases, so live bytes are close to the compiler's but may "
                "differ.",
                int(np.minimum(rebuilt_bytes, module.allocations["size"]).sum()),
            )
        )
    if not schedule.from_file:
        found.append(
            Caveat(
                CaveatCode.NO_SCHEDULE,
                "The program has no schedule; its instructions are assumed to run in the listed order.",
            )
        )
    undescribed = rows[placement.buffer[rows] < 0]
    if len(undescribed):
        found.append(
            Caveat(
                CaveatCode.UNKNOWN_BUFFERS,
                f"{len(undescribed):,} buffers are assigned memory but not described; they are assumed to be live "
                "throughout.",
                int(placement.size[undescribed].sum()),
            )
        )
    described = rows[placement.buffer[rows] >= 0]
    missing = described[module.buffer_instruction[placement.buffer[described]] < 0] if len(described) else described
    if len(missing):
        found.append(
            Caveat(
                CaveatCode.UNKNOWN_INSTRUCTIONS,
                f"{len(missing):,} buffers refer to missing instructions; they are assumed to be live throughout.",
                int(placement.size[missing].sum()),
            )
        )
    if placement.inconsistent_events:
        found.append(
            Caveat(
                CaveatCode.INCONSISTENT_EVENTS,
                f"{placement.inconsistent_events:,} events of the compiler's trace are inconsistent and ignored.",
            )
        )
    if placement.conflicts:
        found.append(
            Caveat(
                CaveatCode.REUSED_EARLY,
                f"{placement.conflicts:,} buffers are overwritten before their last use as reconstructed here; each is "
                "assumed to end where it is overwritten.",
            )
        )
    return tuple(found)
