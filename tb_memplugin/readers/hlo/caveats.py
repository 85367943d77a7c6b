"""Caveats about assumptions in reading a program."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.readers.hlo.lifetimes.placement import Placement
from tb_memplugin.readers.hlo.module.schedule import Schedule
from tb_memplugin.readers.hlo.module.tables import HloModule
from tb_memplugin.sizes import agree, counted


def caveats(module: HloModule, schedule: Schedule, placement: Placement, rows: I64) -> tuple[Caveat, ...]:
    """Return the caveats that concern `rows`, those of one memory space."""
    found = []
    rebuilt = rows[placement.rebuilt[rows]]
    if len(rebuilt):
        rebuilt_bytes = np.bincount(placement.region[rebuilt], placement.size[rebuilt], len(placement.region_kind))
        found.append(
            Caveat(
                CaveatCode.LIFETIMES_REBUILT,
                f"The compiler's trace lacks the lifetimes of {counted(len(rebuilt), 'temporary buffer')}. "
                "Such lifetimes are reconstructed from the schedule, uses and aliases, so live bytes are close to the "
                "compiler's but may differ.",
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
                f"{counted(len(undescribed), 'buffer')} {agree(len(undescribed), 'is', 'are')} assigned memory but not "
                "described, and assumed to be live throughout.",
                int(placement.size[undescribed].sum()),
            )
        )
    described = rows[placement.buffer[rows] >= 0]
    missing = described[module.buffer_instruction[placement.buffer[described]] < 0] if len(described) else described
    if len(missing):
        found.append(
            Caveat(
                CaveatCode.UNKNOWN_INSTRUCTIONS,
                f"{counted(len(missing), 'buffer')} {agree(len(missing), 'refers', 'refer')} to missing instructions "
                f"and {agree(len(missing), 'is', 'are')} assumed to be live throughout.",
                int(placement.size[missing].sum()),
            )
        )
    if placement.inconsistent_events:
        found.append(
            Caveat(
                CaveatCode.INCONSISTENT_EVENTS,
                f"{counted(placement.inconsistent_events, 'event')} of the compiler's trace "
                f"{agree(placement.inconsistent_events, 'is', 'are')} inconsistent and ignored.",
            )
        )
    if placement.conflicts:
        found.append(
            Caveat(
                CaveatCode.REUSED_EARLY,
                f"{counted(placement.conflicts, 'buffer')} {agree(placement.conflicts, 'is', 'are')} overwritten "
                "before the last use as reconstructed here; each is assumed to end where it is overwritten.",
            )
        )
    return tuple(found)
