"""The buffers that use the same bytes as another buffer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording


class Overlap(NamedTuple):
    """Rows whose bytes overlap a given row's, in order of use."""

    row: I64
    same_buffer: I64  # 1 for an alias of the same memory, 0 for a buffer that uses it at another time


def overlap(recording: Recording, row: int) -> Overlap:
    """Return the other rows whose bytes overlap those of `row`; none if its offset is unknown."""
    rows = recording.allocations
    region, offset = rows.region[row], rows.offset[row]
    overlaps = (
        (rows.region == region)
        & (rows.offset < offset + rows.size[row])
        & (offset < rows.offset + rows.size)
        & (np.arange(len(rows)) != row)
        & (region >= 0)
        & (offset >= 0)
    )
    others = np.flatnonzero(overlaps)
    others = others[np.argsort(rows.defined[others], kind="stable")]
    return Overlap(others, (rows.canonical[others] == rows.canonical[row]).astype(np.int64))
