"""Live bytes at one position by allocation site, with earlier and unexplained bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.ownership.sites import group_by_site
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, usage
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording


class Breakdown(NamedTuple):
    """Groups in order of their bytes, largest first. `bytes.sum() + before + unexplained == total`."""

    row: I64  # the largest allocation of each group
    allocations: I64
    bytes: I64
    before: int  # bytes allocated before the recording
    unexplained: int  # bytes of no known allocation, such as those reserved for the stack
    total: int

    @property
    def whole(self) -> int:
        """The bytes that shares are of: more than the total where the rows exceed the bytes in use."""
        return self.total - min(self.unexplained, 0)


def breakdown(recording: Recording, position: int) -> Breakdown:
    """Group the allocations that are live at `position` by site; -1 is before the first event."""
    rows = recording.allocations
    live = live_rows(recording, position)
    over_time = recording.axis is Axis.TIME
    early = live[rows.start[live] < 0] if over_time else live[:0]
    own = live[rows.start[live] >= 0] if over_time else live
    group, groups = group_by_site(rows, own)
    count = np.bincount(group, recording.allocation_counts(own), groups).astype(np.int64)
    size = np.bincount(group, rows.charge[own], groups).astype(np.int64)
    _, first = np.unique(group, return_index=True)  # live rows come largest first
    order = np.argsort(-size[: len(first)], kind="stable")
    charged = int(rows.charge[live].sum())
    rest = unexplained_bytes(recording, position)
    return Breakdown(
        row=own[first][order],
        allocations=count[: len(first)][order],
        bytes=size[: len(first)][order],
        before=int(rows.charge[early].sum()),
        unexplained=rest,
        total=charged + rest,
    )


def unexplained_bytes(recording: Recording, position: int) -> int:
    """Return the bytes in use at `position` that no row is charged for; 0 before the first event."""
    if not 0 <= position < recording.length:
        return 0
    return int(usage(recording).live[position] - explained_bytes(recording)[position])
