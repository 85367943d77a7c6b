"""A buffer assignment for a module that is known as text only: which values get memory, for how long, and where.

It follows XLA's rules as far as the text shows them. Each array that an instruction computes gets memory. The carries
of a loop share theirs, and so do an array and the one that it updates a part of. Results that replace a donated
argument lie in the argument. Temporary memory is packed, the largest array first.

Of 123 programs for TPU, GPU and CPU, the peak is that of XLA within 0.5 % for 75 % of them, within 5 % for 88 %, never
lower, and at most 1.46 times as high. The reserved bytes are within 5 % for 80 %, and between 0.78 and 1.41 times for
all. What it lacks: XLA lets results of element-wise fusions take the place of an operand on some devices, and
temporary arrays that of results, on GPUs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush

import numpy as np

from tb_memplugin.model.arrays import I32, I64, concatenate_ranges, connected_components
from tb_memplugin.model.program import Backend
from tb_memplugin.native.hlo.shape_types import XlaShape
from tb_memplugin.protos.hlo_pb2 import BufferAllocationProto, HloProto
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.derivation import updates_in_place
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes
from tb_memplugin.readers.hlo.dataflow.pass_through import find_flows
from tb_memplugin.readers.hlo.module.program import backend
from tb_memplugin.readers.hlo.module.schedule import flatten_schedule
from tb_memplugin.readers.hlo.module.shapes import padded_bytes
from tb_memplugin.readers.hlo.module.tables import HloModule

TPU_GRANULE = 512  # bytes: XLA rounds each buffer of a TPU up to it
MAX_PACKED = 4_000  # arrays: packing takes quadratic time, and the largest are nearly all bytes
PAIR_WORK = 10  # nanoseconds for two arrays that are packed


def assume_assignment(proto: HloProto, source: str, budget: ReadBudget) -> None:
    """Add a buffer assignment to a scheduled module."""
    _add_buffers(proto, source, budget)
    module = HloModule(proto.SerializeToString(), source, budget)
    del proto.buffer_assignment.buffer_allocations[:]
    groups = _Groups.of(module, proto)
    for color in np.unique(groups.color).tolist():
        for kind in AllocationKind:
            which = np.flatnonzero((groups.color == color) & (groups.kind == kind))
            if not len(which):
                continue
            if kind is AllocationKind.TEMPORARY:
                offset = _pack(groups.start[which], groups.end[which], groups.size[which], budget)
                allocations = [_add_allocation(proto, color, int((offset + groups.size[which]).max()), kind)]
                allocations *= len(which)
            else:
                offset = np.zeros(len(which), dtype=np.int64)
                allocations = [_add_allocation(proto, color, size, kind) for size in groups.size[which].tolist()]
            for group, at, allocation in zip(which.tolist(), offset.tolist(), allocations, strict=True):
                groups.assign(group, at, allocation)


class AllocationKind(IntEnum):
    """The purpose of reserved memory, in the order of precedence within a group."""

    PARAMETER = 0
    RESULT = 1
    CONSTANT = 2
    TEMPORARY = 3


FLAGS = {
    AllocationKind.PARAMETER: "is_entry_computation_parameter",
    AllocationKind.RESULT: "maybe_live_out",
    AllocationKind.CONSTANT: "is_constant",
}


def _add_allocation(proto: HloProto, color: int, size: int, kind: AllocationKind) -> BufferAllocationProto:
    allocations = proto.buffer_assignment.buffer_allocations
    flags = {FLAGS[kind]: True} if kind in FLAGS else {}
    return allocations.add(index=len(allocations), size=size, color=color, **flags)


def _add_buffers(proto: HloProto, source: str, budget: ReadBudget) -> None:
    """Add a logical buffer for each value that an instruction does more than forward."""
    proto.buffer_assignment.buffer_allocations.add(size=1)  # a module without one counts as not compiled
    module = HloModule(proto.SerializeToString(), source, budget)
    nodes = ResultNodes(module, flatten_schedule(module))
    flows = find_flows(nodes)
    is_computed = np.ones(nodes.total, dtype=bool)
    is_computed[concatenate_ranges(flows.target, flows.count)] = False
    found = np.flatnonzero(is_computed)
    position = nodes.position[found]
    instruction = module.instructions["id"][nodes.schedule.order[position]]
    within = found - nodes.base[position]
    paths = [_paths(nodes.shapes.distinct[kind]) for kind in nodes.shapes.kind[nodes.shapes.begin].tolist()]
    rows = zip(instruction.tolist(), nodes.shape[position].tolist(), within.tolist(), strict=True)
    for number, (defined_by, shape, node) in enumerate(rows, 1):
        buffer = proto.buffer_assignment.logical_buffers.add(id=number)
        buffer.defined_at.instruction_id = defined_by
        buffer.defined_at.shape_index.extend(paths[shape][node])


def _paths(shape: XlaShape, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the places in a result of a shape and all that it contains, as ShapeTable numbers them."""
    parts = (_paths(part, (*path, n)) for n, part in enumerate(shape.tuple_shapes))
    return [path, *(found for part in parts for found in part)]


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of logical buffers that share memory, one row each. They are live from `start` until before `end`."""

    start: I64
    end: I64
    size: I64
    color: I64
    kind: I64  # AllocationKind
    begin: I64  # of the group's rows in `buffer`
    buffer: I64  # ids of logical buffers
    nbytes: I64  # of each of these

    def assign(self, group: int, offset: int, allocation: BufferAllocationProto) -> None:
        rows = slice(self.begin[group], self.begin[group + 1])
        for buffer, size in zip(self.buffer[rows].tolist(), self.nbytes[rows].tolist(), strict=True):
            allocation.assigned.add(logical_buffer_id=buffer, offset=offset, size=size)

    @staticmethod
    def of(module: HloModule, proto: HloProto) -> _Groups:
        schedule = flatten_schedule(module)
        dataflow = DataflowAnalysis(module, schedule)
        nodes, last = dataflow.nodes, dataflow.last_used
        shape = nodes.shapes.kind[module.buffer_node]
        size, color = _sizes(nodes.shapes.distinct, backend(module))
        size, color = size[shape], color[shape]
        one, other = (np.r_[pair] for pair in zip(*_sharing(module, dataflow, size, color, proto), strict=True))
        group = connected_components(len(size), one, other)
        order = np.argsort(group, kind="stable")
        begin = np.flatnonzero(np.diff(group[order], prepend=-1, append=len(size)))
        in_entry = module.instructions["parent"][schedule.order] == module.entry
        kind = np.full(len(size), AllocationKind.TEMPORARY, dtype=np.int64)
        kind[last >= schedule.length] = AllocationKind.RESULT
        kind[nodes.is_opcode({"constant"})[dataflow.defined]] = AllocationKind.CONSTANT
        kind[(in_entry & nodes.is_opcode({"parameter"}))[dataflow.defined]] = AllocationKind.PARAMETER
        return _Groups(
            np.minimum.reduceat(dataflow.defined[order], begin[:-1]),
            np.maximum.reduceat(last[order], begin[:-1]) + 1,
            np.maximum.reduceat(size[order], begin[:-1]),
            color[order[begin[:-1]]],
            np.minimum.reduceat(kind[order], begin[:-1]),
            begin, module.buffers["id"][order], size[order],
        )  # fmt: skip


def _sizes(shapes: Sequence[XlaShape], compiled_for: Backend) -> tuple[I64, I64]:
    """Return the bytes of shapes, and their memory spaces."""
    granule = TPU_GRANULE if compiled_for is Backend.TPU else 1
    size = [-(-padded_bytes(shape) // granule) * granule for shape in shapes]
    return np.array(size, dtype=np.int64), np.array([shape.layout.memory_space for shape in shapes], dtype=np.int64)


def _sharing(
    module: HloModule, dataflow: DataflowAnalysis, size: I64, color: I64, proto: HloProto
) -> Iterator[tuple[I32, I32]]:
    """Yield pairs of values that share memory."""
    nodes, value = dataflow.nodes, dataflow.node_buffer
    yield dataflow.loop_carried
    yield _donated(nodes, value, proto)
    source, target = updates_in_place(module, dataflow, size)
    ends = dataflow.last_used[source] == dataflow.defined[target]
    fixed = nodes.is_opcode({"constant", "parameter"})[dataflow.defined[source]]
    fits = ends & ~fixed & (size[source] == size[target]) & (color[source] == color[target])
    source, target = source[fits], target[fits]
    _, first = np.unique(target, return_index=True)
    yield source[first], target[first]


def _donated(nodes: ResultNodes, value: I32, proto: HloProto) -> tuple[I32, I32]:
    """Return (argument, result) values of donated arguments."""
    positions = dict(nodes.parameters(nodes.module.entry))
    root = nodes.root(nodes.module.entry)

    def at(position: int, path: Iterable[int]) -> int:
        if position < 0:
            return -1
        here = np.array([position], dtype=np.int32)
        node = nodes.top(here)
        for index in path:
            node = nodes.shapes.child(node, np.array([index], dtype=np.int64))
        return int(value[nodes.node_at(here, node)][0]) if node[0] >= 0 else -1

    entries = proto.hlo_module.input_output_alias.entries
    found = [
        (at(positions.get(e.parameter_number, -1), e.parameter_shape_index), at(root, e.output_shape_index))
        for e in entries
    ]
    pairs = np.array([pair for pair in found if min(pair) >= 0], dtype=np.int32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _pack(start: I64, end: I64, size: I64, budget: ReadBudget) -> I64:
    """Return offsets at which arrays do not overlap while they are live: each in the smallest gap that it fits in."""
    offset = np.zeros(len(size), dtype=np.int64)
    order = np.argsort(-size, kind="stable")
    packed, rest = order[:MAX_PACKED], order[MAX_PACKED:]
    budget.work(PAIR_WORK * len(packed) ** 2)
    placed = np.empty(0, dtype=np.int64)  # rows, by offset
    for row in packed.tolist():
        beside = placed[(start[placed] < end[row]) & (end[placed] > start[row])]
        top = np.maximum.accumulate(np.r_[0, offset[beside] + size[beside]])
        gap = offset[beside] - top[:-1]
        fits = np.flatnonzero(gap >= size[row])
        offset[row] = top[fits[np.argmin(gap[fits])]] if len(fits) else top[-1]
        placed = np.insert(placed, np.searchsorted(offset[placed], offset[row]), row)
    offset[rest] = int((offset[packed] + size[packed]).max(initial=0)) + _slots(start[rest], end[rest], size[rest])
    return offset


def _slots(start: I64, end: I64, size: I64) -> I64:
    """Return offsets at which arrays do not overlap while they are live: each in a slot of a power of two bytes."""
    offset = np.zeros(len(size), dtype=np.int64)
    free: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # by size: where slots end to be used, offset
    top = 0
    for row in np.argsort(start, kind="stable").tolist():
        slot = 1 << max(int(size[row]) - 1, 0).bit_length()
        if free[slot] and free[slot][0][0] <= start[row]:
            offset[row] = heappop(free[slot])[1]
        else:
            offset[row], top = top, top + slot
        heappush(free[slot], (int(end[row]), int(offset[row])))
    return offset
