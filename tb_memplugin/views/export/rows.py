"""The exported table of a recording: one row per allocation.

Every kind of recording has the same columns, so that one file can contain several; missing facts are unknown values.
The modules csv, json and parquet write the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tb_memplugin.analysis.address.addresses import addresses
from tb_memplugin.analysis.isolate import Failed, each
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import source_lines
from tb_memplugin.analysis.usage.allocation_step import allocation_step
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import Axis, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.views.export.export_table import ExportTable, Numbers
from tb_memplugin.views.export.stack_cells import StackCells
from tb_memplugin.views.shared.summary import summary

# Rows per piece. Few enough that as many different long stacks fit in memory as text; enough that the cost per piece
# does not matter, and that Parquet, where each piece is a row group, is read fast.
PIECE_ROWS = 16_384

# As in the page's tables.
CATEGORIES = Strings.of(["thread-local" if role is Role.THREAD_LOCAL else role.label for role in Role])
REGION_KINDS = Strings.of([RegionKind(kind).label for kind in range(sum(RegionKind) + 1)])


def pieces(recording: Recording) -> Iterator[ExportTable]:
    """Yield the table of a recording in pieces of some rows; at least one piece, which may be empty."""
    stacks, count = StackCells(recording.stacks), len(recording.allocations)
    for begin in range(0, max(count, 1), PIECE_ROWS):
        yield _table(recording, stacks, np.arange(begin, min(begin + PIECE_ROWS, count)))


def exportable(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Failed]]:
    """Return the recordings whose table can be made, and a problem for each other one.

    The first piece needs every analysis. These are memoized, so making it twice costs little.
    """
    return each(recordings, lambda recording: (summary(recording), next(pieces(recording)), recording)[-1])


def _table(recording: Recording, stacks: StackCells, which: I64) -> ExportTable:
    """Return some rows of the table. Columns in `_bytes` are sizes, `_at` positions on the axis, `_at_ns` their times.

    Times are nanoseconds since the recording began. An allocation before the recording, or a free after it, has neither
    position nor time.
    """
    rows, regions, known = recording.allocations, recording.regions, np.ones(len(which), dtype=bool)
    start, end, region, shared = rows.start[which], rows.end[which], rows.region[which], rows.canonical[which]
    # Memory that is live at an instant was allocated before it.
    born = (start >= 0) & (recording.axis is not Axis.INSTANT)
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
        "count": Numbers(recording.allocation_counts(which), known),
        "shape": rows.shape.take(which),
        "dtype": rows.dtype.take(which),
        "op": rows.op.take(which),
        "op_name": rows.scope.take(which),
        "source": source_lines(recording).take(which),
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
    """Return the entries of a column at the known indices."""
    found = np.zeros(len(index), dtype=np.int64)
    found[known] = column[index[known]]
    return Numbers(found, known)
