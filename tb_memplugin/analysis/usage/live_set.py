"""The allocations that are live at one position."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording


def live_rows(recording: Recording, position: int) -> I64:
    """Return the rows that are charged for memory at a position, largest first."""
    rows = recording.allocations
    live = np.flatnonzero((rows.start <= position) & (position < rows.end) & (rows.charge > 0))
    ordered: I64 = live[np.argsort(-rows.charge[live], kind="stable")]
    return ordered


def bytes_by_role(recording: Recording, position: int) -> dict[Role, int]:
    """Return the live bytes of each role, largest first; roles without live bytes are left out."""
    rows = live_rows(recording, position)
    sums = np.bincount(roles(recording)[rows], recording.allocations.charge[rows], len(Role))
    return {Role(role): int(sums[role]) for role in np.argsort(-sums, kind="stable").tolist() if sums[role]}
