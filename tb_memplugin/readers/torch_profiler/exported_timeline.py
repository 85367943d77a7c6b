"""Files of export_memory_timeline, which have sizes and categories but no tensors.

The raw form has allocations and frees, without tensor identity; the JSON form has bytes per category and time.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind, Role
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.model.tables import CachingAllocatorState, NamedSpans, ReportedMemory
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import HAS, IS, counted_caveat, impossible_bytes, is_plausible
from tb_memplugin.readers.common.part import Origin
from tb_memplugin.sizes import agree

NS_PER_US = 1000


def timeline_recording(
    origin: Origin,
    memory: str,
    clock: I64,
    start: I64,
    end: I64,
    size: I64,
    role: U8,
    name: Text,
    *,
    address: I64 | None = None,
    reported: ReportedMemory | None = None,
    reserved: I64 | None = None,
    spans: NamedSpans | None = None,
    caveats: Sequence[Caveat] = (),
) -> Recording:
    """Build a recording from rows that are live at start <= p < end; start -1 is before the first position.

    `clock`: nanoseconds per position. `spans`: intervals on the same clock.
    """
    first = int(clock[0]) if len(clock) else 0
    return Recording(
        **origin._asdict(),
        kind=RecordingKind.TORCH_TIMELINE,
        title="timeline",
        memory=memory,
        axis=Axis.TIME,
        length=len(clock),
        allocations=table_builder.allocations(
            size, id=address, start=start, end=end, last_used=end, role=role, name=name
        ),
        regions=table_builder.no_regions(),
        stacks=table_builder.no_stacks(),
        clock=clock - first,
        capture_info=CaptureInfo(time_ns=first) if first else None,
        reported=reported,
        caching_allocator=None if reserved is None else CachingAllocatorState(reserved),
        spans=spans and NamedSpans(spans.name, spans.kind, spans.start_ns - first, spans.end_ns - first),
        caveats=tuple(caveats),
    )


class ProfilerCategory(NamedTuple):
    name: str
    role: Role


CATEGORIES = (
    ProfilerCategory("parameter", Role.PARAMETER),
    ProfilerCategory("optimizer state", Role.OPTIMIZER_STATE),
    ProfilerCategory("input", Role.INPUT),
    ProfilerCategory("temporary", Role.TEMPORARY),
    ProfilerCategory("activation", Role.ACTIVATION),
    ProfilerCategory("gradient", Role.GRADIENT),
    ProfilerCategory("autograd detail", Role.TEMPORARY),
    ProfilerCategory("unknown", Role.UNKNOWN),
)
UNKNOWN = len(CATEGORIES) - 1


def roles(category: np.ndarray) -> U8:
    """Return the roles of category numbers; UNKNOWN for numbers outside the list."""
    known = (category >= 0) & (category < len(CATEGORIES))
    role_of_category = np.array([category.role for category in CATEGORIES], dtype=np.uint8)
    return np.asarray(role_of_category[np.where(known, category, UNKNOWN)])


def _names(category: I64) -> Text:
    """Return the names of category numbers; for numbers outside the list, the nearest."""
    number = np.clip(category, 0, len(CATEGORIES) - 1).astype(np.int32)
    return Text(number, Text.of([category.name for category in CATEGORIES]).strings)


MEMORY = "device"  # a file is of one device, without a name


class TimelineAction(IntEnum):
    """Actions of PyTorch's memory profiler."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3  # two rows: leaving one category, entering another
    DESTROY = 4


def read_tensor_events(rows: I64, origin: Origin) -> list[Recording]:
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
    rest = f"no allocation and {agree(unmatched_frees, *IS)} ignored"
    caveats += counted_caveat(CaveatCode.FREE_WITHOUT_ALLOCATION, unmatched_frees, "free", HAS, rest)
    caveats += impossible_bytes(int((~kept).sum()), "row", HAS, "impossible sizes, which are ignored")
    row = np.flatnonzero(~ends)
    clock = np.maximum.accumulate(time[events]) if len(events) else np.zeros(1, np.int64)
    length = len(clock)
    end = np.where(freed[row] >= 0, freed[row], length)
    kind, size = kind[row], size[row]
    return [
        timeline_recording(origin, MEMORY, clock, start[row], end, size, roles(kind), _names(kind), caveats=caveats)
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
    depth = total - (total - step)[new][group]
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


ROW_BYTES = 512  # of a period while its recording is made; measured: 300


def read_category_sums(time_us: I64, sizes: I64, origin: Origin, budget: ReadBudget) -> list[Recording]:
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
    start, end, size, category = (column[nonzero] for column in (start, end, size, category))
    text = "The file has sums per category but no tensors: a row is all memory of a category while its sum is constant."
    caveats = [Caveat(CaveatCode.SUMS_ONLY, text)]
    caveats += impossible_bytes(int((~kept).sum()), "sum", IS, "impossible and counted as 0")
    clock = np.maximum.accumulate(time_us) * NS_PER_US
    role, name = roles(category), _names(category)
    return [timeline_recording(origin, MEMORY, clock, start, end, size, role, name, caveats=caveats)]
