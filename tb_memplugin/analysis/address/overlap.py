"""Who else uses the bytes of a buffer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording


class Overlap(NamedTuple):
    """Rows whose bytes overlap a given row's, by when they are used."""

    row: I64
    same_buffer: I64  # 1 where the two are one memory by design (an alias), 0 where they take turns


def overlap(recording: Recording, row: int) -> Overlap:
    """Every other row of the same region that overlaps `row` in bytes, in order of use; none where it is not placed."""
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
