"""The JSON form of export_memory_timeline: bytes per category and time, without tensors."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import impossible_bytes, is_plausible
from tb_memplugin.readers.torch_profiler.categories import CATEGORIES, roles
from tb_memplugin.readers.torch_profiler.tensor_events import MEMORY
from tb_memplugin.readers.torch_profiler.timeline import FileOrigin, timeline_recording

NS_PER_US = 1000
ROW_BYTES = 512  # of a period while its recording is made; measured: 300


def read_category_sums(time_us: I64, sizes: I64, origin: FileOrigin, budget: ReadBudget) -> list[Recording]:
    """Read a recording with one row for each period in which a category's bytes stay the same.

    `time_us`: n times in microseconds. `sizes`: n x 9 bytes; the first column is always 0, the others are categories.
    """
    kept = is_plausible(sizes[:, 1:])
    by_category = np.where(kept, sizes[:, 1:], 0).T.clip(0)
    n = len(time_us)
    changes = np.c_[np.ones(len(by_category), bool), np.diff(by_category, axis=1) != 0]
    budget.charge(ROW_BYTES * int(changes.sum()))
    category, start = np.nonzero(changes)
    end = np.r_[start[1:], n]
    end = np.where(np.r_[category[1:] != category[:-1], True], n, end)
    size = by_category[category, start]
    nonzero = size > 0
    names = Text.of([category.name for category in CATEGORIES]).strings
    number = np.minimum(category[nonzero], len(CATEGORIES) - 1)
    caveat = Caveat(
        CaveatCode.SUMS_ONLY,
        "The file has sums per category but no tensors: a row is all memory of a category while its sum is constant.",
    )
    return [
        timeline_recording(
            origin,
            MEMORY,
            np.maximum.accumulate(time_us) * NS_PER_US,
            start[nonzero],
            end[nonzero],
            size[nonzero],
            roles(category[nonzero]),
            Text(number.astype(np.int32), names),
            caveats=[
                caveat,
                *impossible_bytes(int((~kept).sum()), "sum", ("is", "are"), "impossible and counted as 0"),
            ],
        )
    ]
