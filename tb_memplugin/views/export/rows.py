"""Recordings as a table for other tools: a row for each allocation, and all that is known of it in columns.

Every kind of recording has the same columns, so that several can be in one file; what one does not tell is unknown
there. export_csv, export_json and export_parquet write them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.address.addresses import addresses
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.allocation_step import allocation_step
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.kinds import Axis, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.views.export.export_table import Mask, Numbers, Table
from tb_memplugin.views.export.stack_cells import WholeStacks
from tb_memplugin.views.shared.sources import sources

# Rows written at a time. Few enough for as many long stacks, each another, to be in memory as text; enough for what
# is done once for each piece not to count, and for Parquet, which keeps each as a row group, to be read fast.
PIECE = 16_384


# In the words of the page's tables.
CATEGORIES = Strings.of(
    ["thread-local" if role is Role.THREAD_LOCAL else role.name.lower().replace("_", " ") for role in Role]
)
REGION_KINDS = Strings.of([RegionKind(kind).label for kind in range(sum(RegionKind) + 1)])


def pieces(recording: Recording) -> Iterator[Table]:
    """The table of a recording, some rows at a time; at least one piece, which may have none."""
    stacks, count = WholeStacks(recording.stacks), len(recording.allocations)
    for begin in range(0, max(count, 1), PIECE):
        yield _table(recording, stacks, np.arange(begin, min(begin + PIECE, count)))


def _table(recording: Recording, stacks: WholeStacks, which: I64) -> Table:
    """Sizes are in bytes; `_at` is a position on the axis, and `_at_ns` its time since the recording began.

    What was allocated before the recording or not freed in it has no position and no time of that.
    """
    rows, regions, known = recording.allocations, recording.regions, np.ones(len(which), dtype=bool)
    start, end, region, shared = rows.start[which], rows.end[which], rows.region[which], rows.canonical[which]
    born = (start >= 0) & (recording.axis is not Axis.INSTANT)  # what is there at one moment came before it
    freed, place = end < recording.length, addresses(recording, which)
    clock = recording.clock if recording.clock is not None else np.empty(0, dtype=np.int64)
    kinds = _at(regions.kind.astype(np.int64), region, place.in_region & ~place.addressed)

    return {
        "recording": Text(np.zeros(len(which), dtype=np.int32), Strings.of([recording.id])),
        "row": Numbers(which, known),
        "name": rows.name.take(which),
        "category": Text(roles(recording)[which].astype(np.int32), CATEGORIES),
        "size_bytes": Numbers(rows.size[which], known),
        "requested_bytes": Numbers(rows.requested[which], known),
        "charge_bytes": Numbers(rows.charge[which], known),
        "count": Numbers(which * 0 + 1 if recording.counts is None else recording.counts[which], known),
        "shape": rows.shape.take(which),
        "dtype": rows.dtype.take(which),
        "op": rows.op.take(which),
        "op_name": rows.scope.take(which),
        "source": sources(recording).take(which),
        "stack": stacks.texts(rows.stack[which]),
        "freed_stack": stacks.texts(
            rows.stack[which] * 0 - 1 if recording.free_stack is None else recording.free_stack[which]
        ),
        "step": allocation_step(recording).take(which),
        "live_before": ~born,
        "never_freed": ~freed,
        "allocated_at": Numbers(start, born),
        "freed_at": Numbers(end, freed),
        "allocated_at_ns": _at(clock, start, born & (start < len(clock))),
        "freed_at_ns": _at(clock, end, freed & (end < len(clock))),
        "defined_at": Numbers(rows.defined[which], known),
        "last_used_at": Numbers(rows.last_used[which], known),
        "region": Numbers(place.region, place.in_region),
        "region_kind": Text(np.where(kinds.known, kinds.values, -1).astype(np.int32), REGION_KINDS),
        "region_bytes": _at(regions.size, region, place.in_region),
        "offset_bytes": Numbers(rows.offset[which], rows.offset[which] >= 0),
        "address": Numbers(place.address, place.addressed),
        "shares_with_row": Numbers(shared.astype(np.int64), shared != which),
        "id": Numbers(rows.id[which], known),
    }


def _at(column: I64, index: I64 | I32, known: Mask) -> Numbers:
    """Entries of a column by their index, where that is known to be one."""
    found = np.zeros(len(index), dtype=np.int64)
    found[known] = column[index[known]]
    return Numbers(found, known)
