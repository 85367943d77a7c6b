"""The raw form of export_memory_timeline: allocations and frees with categories, but without tensor identity."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.limits import impossible_bytes, is_plausible
from tb_memplugin.readers.torch_profiler.categories import CATEGORIES, roles
from tb_memplugin.readers.torch_profiler.timeline import FileOrigin, timeline_recording
from tb_memplugin.sizes import agree, counted

MEMORY = "device"  # a file is of one device, without a name


class TimelineAction(IntEnum):
    """Actions of PyTorch's memory profiler."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3  # two rows: leaving one category, entering another
    DESTROY = 4


def read_tensor_events(rows: I64, origin: FileOrigin) -> list[Recording]:
    """Read a recording from `rows`, n x (nanoseconds, action, bytes, category) in order; frees have negative bytes."""
    kept = is_plausible(rows[:, 2])
    time, action, change, category = rows[kept].T
    old = action == TimelineAction.PREEXISTING
    # Preexisting memory is live before the first event and has no event of its own.
    events = np.flatnonzero(~old)
    size = np.r_[np.abs(change[old]), np.abs(change[events])]
    kind = np.r_[category[old], category[events]]
    ends = np.r_[np.zeros(old.sum(), bool), change[events] < 0]
    position = np.r_[np.full(old.sum(), -1), np.arange(len(events))]
    start, freed, unmatched_frees = _pair_by_size(kind, size, ends, position)
    text = (
        "The file does not identify tensors: a free ends the latest allocation of its size and category. "
        "Sums are exact, but lifetimes may be swapped."
    )
    caveats = [Caveat(CaveatCode.NO_IDENTITY, text)]
    if unmatched_frees:
        have, are = agree(unmatched_frees, "has", "have"), agree(unmatched_frees, "is", "are")
        text = f"{counted(unmatched_frees, 'free')} {have} no allocation and {are} ignored."
        caveats.append(Caveat(CaveatCode.FREE_WITHOUT_ALLOCATION, text))
    caveats += impossible_bytes(int((~kept).sum()), "row", ("has", "have"), "impossible sizes, which are ignored")
    row = np.flatnonzero(~ends)
    number = np.clip(kind[row], 0, len(CATEGORIES) - 1)
    name = Text(number.astype(np.int32), Text.of([category.name for category in CATEGORIES]).strings)
    clock = np.maximum.accumulate(time[events]) if len(events) else np.zeros(1, np.int64)
    length = len(clock)
    end = np.where(freed[row] >= 0, freed[row], length)
    return [
        timeline_recording(origin, MEMORY, clock, start[row], end, size[row], roles(kind[row]), name, caveats=caveats)
    ]


def _pair_by_size(kind: I64, size: I64, ends: np.ndarray, position: I64) -> tuple[I64, I64, int]:
    """Return (position of each start, position of each free or -1, number of frees without an allocation).

    Within one category and size, allocations and frees nest like brackets: a free ends the latest open allocation.
    """
    order = np.lexsort((np.arange(len(kind)), size, kind))
    step = np.where(ends[order], -1, 1)
    new = np.r_[True, (np.diff(kind[order]) != 0) | (np.diff(size[order]) != 0)][: len(order)]
    group = np.cumsum(new) - 1
    total = np.cumsum(step)
    before = (total - step)[new] if len(order) else total
    depth = total - before[group] if len(order) else total
    level = np.where(step > 0, depth, depth + 1)  # equal for an allocation and its free
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
