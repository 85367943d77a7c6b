"""The schedule graph of a compiled program, or of the body of one of its loops."""

from dataclasses import dataclass, replace

import numpy as np

from tb_memplugin.analysis.dataflow.graph import DataflowGraph, dataflow_graph, uses
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph, lower_peak, program_loops
from tb_memplugin.model.arrays import (
    I32,
    I64,
    Mask,
    concatenate_ranges,
    largest_per,
    marked,
    smallest_per,
    sum_over_time,
    take_or_missing,
)
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording

# Operations that only move a value between memories. The compiler adds them after it has decided what to compute.
MOVES = {
    "async-done", "async-start", "async-update", "concatenate", "copy", "copy-done", "copy-start", "custom-call",
    "dynamic-slice", "slice", "slice-done", "slice-start",
}  # fmt: skip
MAX_POSITIONS = 500_000  # replaying 100,000 takes about a second
MAX_TENANTS = 3  # earlier rows in the same memory that a row may overwrite
# A compiler finds other memory for rows up to this share of all memory, such as the scalars of a norm that a step adds
# up in the memory of its loss, gradient after gradient. From 0.001 to 0.05, the stored programs get the same advice;
# from 0.01 on, the best order of a scan over gated recurrences saves 7,721 MiB, as it did when compiled (7,785).
PLACED_ANYWHERE = 0.02


@dataclass(frozen=True, eq=False)
class ProgramGraph:
    """A schedule graph with the node of each position, and the buffer of each row of `allocations`; -1 for none.

    `reader` lists (value, node) pairs, and `row_reader` (row, node) pairs. `position` is the position of each node.
    """

    recording: Recording
    data: DataflowGraph
    graph: ScheduleGraph
    position: I64
    node: I32
    buffer: I32
    value_node: I32  # per value of the data flow: the node that computes it
    row_node: I32  # per row: the node that computes it
    reader: tuple[I32, I32]
    row_reader: tuple[I32, I32]

    @cached_property
    def lower_order(self) -> I32:
        """An order of the operations with a lower peak: a compiler that schedules a changed program may find it."""
        return lower_peak(self.graph, self.graph.own_order)


@memoize
def program_graph(recording: Recording) -> ProgramGraph | None:
    """Return the schedule graph of a program's entry computation; None without data flow, or if it is too large."""
    data = dataflow_graph(recording) if recording.length <= MAX_POSITIONS else None
    if data is None:
        return None
    own = data.program.computation.isin({data.program.entry_computation})
    if not own.any():
        return None
    whole: Mask = recording.regions.kind[recording.allocations.region] != RegionKind.TEMPORARY
    constant = int(recording.allocations.charge[whole].sum())
    return _build(recording, data, own, 0, recording.length, constant)


def body_graph(recording: Recording, loop: int) -> ProgramGraph | None:
    """Return the schedule graph of the body of the loop at a position, with the buffers that only the body accesses."""
    data, loops = dataflow_graph(recording), program_loops(recording)
    number = int(np.searchsorted(loops.position, loop))
    if data is None or number == len(loops) or loops.position[number] != loop:
        return None
    code = data.program.computation.codes
    return _build(recording, data, code == code[loop - 1], int(loops.first[number]), loop, 0)


def _build(
    recording: Recording, data: DataflowGraph, own: Mask, first: int, stop: int, constant: int
) -> ProgramGraph | None:
    """Build the graph of the positions `own` and of those inside them, all within [first, stop)."""
    values, table = data.values, recording.allocations
    own = own & (np.arange(recording.length) >= first) & (np.arange(recording.length) < stop)
    if not own.any():
        return None
    representative = _representatives(recording, data, own, first, stop)
    known = representative >= 0
    kept, code = np.unique(representative[known], return_inverse=True)
    node = np.full(recording.length, -1, dtype=np.int32)
    node[known] = code
    value_node = take_or_missing(node, values.producer)
    used, use = values.used_value, node[values.use]
    inside = (use >= 0) & (use != value_node[used])
    reader = _distinct(used[inside], use[inside], len(kept))
    row_node = take_or_missing(value_node, data.value)
    begin, row_use = uses(recording)
    row = np.repeat(np.arange(len(table)), np.diff(begin)).astype(np.int32)
    row_use = node[row_use]
    inside = (row_use >= 0) & (row_use != row_node[row])
    row_reader = _distinct(row[inside], row_use[inside], len(kept))
    entering, entered = values.loop_carried
    before, after = value_node[reader[0]], reader[1]
    carried = value_node[entering], value_node[entered]
    buffer, size = _buffers(recording, row_node, first, stop)
    guarded = _overwritten(recording, row_node, row_reader)
    source = np.r_[before, carried[0], guarded[0]]
    target = np.r_[after, carried[1], guarded[1]]
    real = (source >= 0) & (source < target)
    edges = _distinct(source[real], target[real], len(kept))
    made, read = np.flatnonzero((buffer >= 0) & (row_node >= 0)), buffer[row_reader[0]] >= 0
    accesses = _distinct(
        np.r_[buffer[made], buffer[row_reader[0][read]]], np.r_[row_node[made], row_reader[1][read]], len(kept)
    )
    graph = ScheduleGraph(*edges, size, *accesses, np.zeros(len(kept), dtype=np.int64), constant)
    graph = _with_workspaces(recording, graph, node, (node >= 0) & ~own, buffer)
    return ProgramGraph(recording, data, graph, kept, node, buffer, value_node, row_node, reader, row_reader)


def _distinct(left: I32 | I64, right: I32 | I64, count: int) -> tuple[I32, I32]:
    """Return distinct pairs, sorted; the right numbers are below `count`."""
    key = np.sort(left.astype(np.int64) * max(count, 1) + right)
    key = key[np.diff(key, prepend=-1 if not len(key) else key[0] - 1) > 0]
    return (key // max(count, 1)).astype(np.int32), (key % max(count, 1)).astype(np.int32)


def _representatives(recording: Recording, data: DataflowGraph, own: Mask, first: int, stop: int) -> I64:
    """Return the position to whose node each position belongs, -1 outside of the computation.

    Positions inside a loop or call belong to it. A move belongs to the first operation that needs it, or to the one
    whose result it stores in this memory.
    """
    program, value, values = data.program, data.value, data.values
    at = np.arange(recording.length)
    owned = np.flatnonzero(own)
    found = np.full(recording.length, -1, dtype=np.int64)
    inside = slice(first, int(owned[-1]) + 1)
    found[inside] = owned[np.searchsorted(owned, at[inside])]
    named = program.op_name.map(lambda text: "/" in text, False, np.bool_)
    moves = own & program.op.isin(MOVES) & ~named
    if not moves.any():
        return found
    producer, used = values.producer, values.used_value
    stored = value[(value >= 0) & (recording.allocations.size > 0)]
    here = producer[stored[values.elements[stored] > 1]]  # an asynchronous move also has a context, a number
    stores, makes = (marked(recording.length, at[at >= 0]) for at in (here, producer))
    known = (producer[used] >= 0) & (found[values.use] >= 0)
    source, reader = found[producer[used[known]]], found[values.use[known]]
    apart = (source >= 0) & (source != reader)
    source, reader = source[apart], reader[apart]
    stores, makes = (marked(recording.length, found[mask & (found >= 0)]) for mask in (stores, makes))
    ends = moves & ~makes  # the second halves of asynchronous moves, whose result is that of the first halves
    # Later moves come first, so that a chain of moves ends in an operation.
    part_of = at.astype(np.int64)
    fetched = np.flatnonzero((moves & makes & ~stores)[source] & ~ends[reader])
    for at_read in fetched[np.lexsort((-reader[fetched], -source[fetched]))].tolist():
        part_of[source[at_read]] = part_of[reader[at_read]]  # the last to be assigned is the first reader
    for at_read in np.flatnonzero((moves & stores | ends)[reader]).tolist():
        part_of[reader[at_read]] = part_of[source[at_read]]
    return np.where(found >= 0, part_of[found], -1)


def _buffers(recording: Recording, row_node: I32, first: int, stop: int) -> tuple[I32, I64]:
    """Return the buffer of each row in temporary memory, -1 for other rows, and the size of each buffer.

    Rows that share memory are one buffer. A body's buffers are those whose rows are all computed in it.
    """
    table = recording.allocations
    temporary = (recording.regions.kind[table.region] == RegionKind.TEMPORARY) & (table.size > 0)
    outside = np.zeros(len(table), dtype=bool)
    if first > 0 or stop < recording.length:
        elsewhere = (table.defined < first) | (table.last_used >= stop) | (row_node < 0)
        outside[table.canonical[elsewhere]] = True
    mine = np.flatnonzero(temporary & ~outside[table.canonical])
    canonical, code = np.unique(table.canonical[mine], return_inverse=True)
    size = largest_per(code, table.charge[mine], len(canonical))
    buffer = np.full(len(table), -1, dtype=np.int32)
    buffer[mine] = code
    return buffer, size


def _overwritten(recording: Recording, row_node: I32, row_reader: tuple[I32, I32]) -> tuple[I64, I64]:
    """Return edges from the readers of a row to the node that overwrites it with a later row.

    Small rows in memory that is of results alone, and of no donated argument, make none.
    """
    table = recording.allocations
    begin = np.searchsorted(row_reader[0], np.arange(len(table) + 1))
    kind = recording.regions.kind[table.region]
    whole = kind != RegionKind.TEMPORARY
    guarded = (table.size > 0) & ~(
        (kind == RegionKind.OUTPUT) & (table.size < PLACED_ANYWHERE * recording.regions.size.sum())
    )
    memory = np.where(whole, len(table) + table.region.astype(np.int64), table.canonical)
    order = np.lexsort((row_node, memory))
    sources, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for distance in range(1, MAX_TENANTS + 1):
        earlier, later = order[:-distance], order[distance:]
        same = (memory[earlier] == memory[later]) & (row_node[later] >= 0) & guarded[earlier]
        same &= (table.offset[earlier] < table.offset[later] + table.size[later]) & (
            table.offset[later] < table.offset[earlier] + table.size[earlier]
        )
        earlier, later = earlier[same], later[same]
        count = begin[earlier + 1] - begin[earlier]
        readers = row_reader[1][concatenate_ranges(begin[earlier], count)]
        sources += [row_node[earlier].astype(np.int64), readers.astype(np.int64)]
        targets += [row_node[later].astype(np.int64), np.repeat(row_node[later], count).astype(np.int64)]
    return np.concatenate(sources), np.concatenate(targets)


def _with_workspaces(recording: Recording, graph: ScheduleGraph, node: I32, nested: Mask, buffer: I32) -> ScheduleGraph:
    """Make buffers that exist inside a single node, such as a loop, part of its workspace.

    `node`: of each position; `nested`: the positions inside of another one; `buffer`: of each row of `allocations`.
    """
    table = recording.allocations
    first = smallest_per(graph.buffer, graph.node, len(graph.size), graph.nodes)
    last = largest_per(graph.buffer, graph.node, len(graph.size), -1)
    contains_others = marked(graph.nodes, node[nested])
    inner = (first == last) & contains_others[np.minimum(first, graph.nodes - 1)]
    charged = np.flatnonzero((buffer >= 0) & (table.charge > 0))
    charged = charged[inner[buffer[charged]]]
    live = sum_over_time(recording.length, table.start[charged], table.end[charged], table.charge[charged])
    workspace = largest_per(node[nested], live[nested], graph.nodes)
    return replace(graph, size=np.where(inner, 0, graph.size), workspace=workspace)
