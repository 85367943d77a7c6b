"""export_memory_timeline's JSON form: bytes of each category at each time, and no tensor at all."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.limits import impossible_bytes, is_plausible
from tb_memplugin.readers.torch_profiler.categories import CATEGORIES, roles
from tb_memplugin.readers.torch_profiler.tensor_events import MEMORY
from tb_memplugin.readers.torch_profiler.timeline import Where, timeline

MICROSECOND = 1000  # in nanoseconds


def read_curves(time_us: I64, sizes: I64, where: Where) -> list[Recording]:
    """`time_us`: n times; `sizes`: n x 9, whose first column is always 0 and the others the bytes of a category.

    A category at one level is a row, for as long as it stays there.
    """
    kept = is_plausible(sizes[:, 1:])
    by_category = np.where(kept, sizes[:, 1:], 0).T.clip(0)
    n = len(time_us)
    begins = np.c_[np.ones(len(by_category), bool), np.diff(by_category, axis=1) != 0]
    category, start = np.nonzero(begins)
    end = np.r_[start[1:], n]
    end = np.where(np.r_[category[1:] != category[:-1], True], n, end)
    size = by_category[category, start]
    some = size > 0
    names = Text.of([category.name for category in CATEGORIES]).strings
    number = np.minimum(category[some], len(CATEGORIES) - 1)
    caveat = Caveat(
        "sums-only",
        "The file holds sums and no tensors: a row is all of one category, while its sum stays the same.",
    )
    return [
        timeline(
            where,
            MEMORY,
            np.maximum.accumulate(time_us) * MICROSECOND,
            start[some],
            end[some],
            size[some],
            roles(category[some]),
            Text(number.astype(np.int32), names),
            caveats=[caveat, *impossible_bytes(int((~kept).sum()), "sums are impossible, and count as 0")],
        )
    ]
