"""export_memory_timeline's raw form: what came and went, with its category, but not which tensor it was."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.limits import impossible_bytes, is_plausible
from tb_memplugin.readers.torch_profiler.categories import CATEGORIES, roles
from tb_memplugin.readers.torch_profiler.timeline import Where, timeline

MEMORY = "device"  # one file is of one device, which it does not name


class Action(IntEnum):
    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3  # two rows: out of one category, into another
    DESTROY = 4


def read_versions(rows: I64, where: Where) -> list[Recording]:
    """`rows`: n x (nanoseconds, action, bytes, category), in order; bytes are negative where memory goes."""
    kept = is_plausible(rows[:, 2])
    time, action, change, category = rows[kept].T
    old = action == Action.PREEXISTING
    # What was there before stands before the first event: it is no event itself.
    events = np.flatnonzero(~old)
    size = np.r_[np.abs(change[old]), np.abs(change[events])]
    kind = np.r_[category[old], category[events]]
    ends = np.r_[np.zeros(old.sum(), bool), change[events] < 0]
    position = np.r_[np.full(old.sum(), -1), np.arange(len(events))]
    born, freed, strays = _paired(kind, size, ends, position)
    caveats = [Caveat("no-identity", "The file tells no tensor from another: a free ends the last one made that has "
                      "its size and category. The sums are right, lives may be swapped.")]  # fmt: skip
    if strays:
        caveats.append(Caveat("free-without-allocation", f"{strays:,} frees have no allocation; they are left out."))
    caveats += impossible_bytes(int((~kept).sum()), "rows tell impossible bytes, and are left out")
    row = np.flatnonzero(~ends)
    number = np.clip(kind[row], 0, len(CATEGORIES) - 1)
    name = Text(number.astype(np.int32), Text.of([category.name for category in CATEGORIES]).strings)
    clock = np.maximum.accumulate(time[events]) if len(events) else np.zeros(1, np.int64)
    length = len(clock)
    end = np.where(freed[row] >= 0, freed[row], length)
    return [timeline(where, MEMORY, clock, born[row], end, size[row], roles(kind[row]), name, caveats=caveats)]


def _paired(kind: I64, size: I64, ends: np.ndarray, position: I64) -> tuple[I64, I64, int]:
    """(where each begins; where it is freed, -1 for never; frees that have nothing to free).

    Within one kind and size these are brackets, the last opened is closed first: a closing one belongs to the latest
    opening one at its depth.
    """
    order = np.lexsort((np.arange(len(kind)), size, kind))
    step = np.where(ends[order], -1, 1)
    new = np.r_[True, (np.diff(kind[order]) != 0) | (np.diff(size[order]) != 0)][: len(order)]
    group = np.cumsum(new) - 1
    total = np.cumsum(step)
    before = (total - step)[new] if len(order) else total
    depth = total - before[group] if len(order) else total
    level = np.where(step > 0, depth, depth + 1)  # an opening and its closing bracket have the same
    nested = np.lexsort((np.arange(len(order)), level, group))
    here, after = order[nested[:-1]], order[nested[1:]]
    matched = (
        (group[nested[:-1]] == group[nested[1:]])
        & (level[nested[:-1]] == level[nested[1:]])
        & ~ends[here]
        & ends[after]
    )
    freed = np.full(len(kind), -1)
    freed[here[matched]] = position[after[matched]]
    return position, freed, int(ends.sum() - matched.sum())
