"""How much an allocator was asked for and given back, over all of its events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.recording import Recording


class Traffic(NamedTuple):
    """Counts and bytes. What was live before or never freed shows as the difference."""

    allocations: int
    allocated_bytes: int
    frees: int
    freed_bytes: int
    live_before: int  # rows
    live_before_bytes: int
    never_freed: int
    never_freed_bytes: int


def traffic(recording: Recording) -> Traffic:
    rows = recording.allocations
    born, ended = rows.start >= 0, rows.end < recording.length
    # An allocation at an address that is still taken ends the one before it, and is no free.
    freed = ended & ~np.isin(rows.end, rows.start[born])

    def both(which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[int, int]:
        return int(which.sum()), int(rows.size[which].sum())

    return Traffic(*both(born), *both(freed), *both(~born), *both(born & ~ended))
