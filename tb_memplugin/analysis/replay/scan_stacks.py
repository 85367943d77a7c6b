"""Values that a forward loop leaves to the iterations of a backward loop: slices of stacks, and carried values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph, uses
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.replay.program_graph import ProgramGraph
from tb_memplugin.model.arrays import I32, I64, Mask, concatenate_ranges, dimensions, largest_per, marked
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording

NO_WORK = {"parameter", "tuple", "get-tuple-element", "while"}
COPIES = {"copy", "copy-start", "copy-done"}
MAX_COPIES = 4  # length of a chain of copies


class SliceStacks(NamedTuple):
    """Memory that a forward loop writes slice by slice, and that a backward loop reads."""

    memory: I64  # the canonical row
    value: I32  # the written value
    writer: I32  # the forward body's node that writes a slice
    slice: I64  # bytes

    def take(self, which: Mask) -> SliceStacks:
        return SliceStacks(self.memory[which], self.value[which], self.writer[which], self.slice[which])


class Carried(NamedTuple):
    """Values that a loop carries into each iteration."""

    value: I32
    size: I64


@dataclass(frozen=True, eq=False)
class ScanStacks:
    """A forward and a backward loop, and the values that the first keeps for the second."""

    parent: ProgramGraph  # the computation that runs both
    forward: ProgramGraph  # the bodies
    backward: ProgramGraph

    @property
    def recording(self) -> Recording:
        return self.forward.recording

    @property
    def program(self) -> Program:
        return self.forward.data.program

    @property
    def row_value(self) -> I32:
        return self.forward.data.value

    @property
    def values(self) -> DataflowValues:
        return self.forward.data.values

    @cached_property
    def entrance(self) -> int:
        """The forward body's node of its parameter, -1 if it has none."""
        found = np.flatnonzero(self.program.op.isin({"parameter"})[self.forward.position])
        return int(found[0]) if len(found) else -1

    @cached_property
    def reads(self) -> tuple[I64, I32]:
        """The (memory, node) pairs of reads by operations in the backward body, those of inner loops included.

        A read of a copy counts as a read of the memory that was copied.
        """
        begin, position = uses(self.recording)
        row = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
        inside = (self.backward.node[position] >= 0) & ~self.program.op.isin(NO_WORK)[position]
        memory = self.recording.allocations.canonical.astype(np.int64)
        return self.copied_from[memory[row[inside]]], self.backward.node[position[inside]]

    @cached_property
    def copied_from(self) -> I64:
        """Per memory: the memory of which the parent made it as a copy, such as in another layout; else itself."""
        values, parent, table = self.values, self.parent, self.recording.allocations
        found = np.arange(len(table))
        row, node = parent.row_reader
        elements = np.where(self.row_value >= 0, values.elements[self.row_value], 0)
        made = np.flatnonzero((parent.row_node >= 0) & (parent.buffer >= 0) & (elements > 1))
        results = np.bincount(parent.row_node[made], minlength=parent.graph.nodes)
        result = np.full(parent.graph.nodes, -1, dtype=np.int64)
        result[parent.row_node[made]] = made
        copied = (results[node] == 1) & (elements[row] == elements[result[node]])
        copied &= table.canonical[row] != table.canonical[result[node]]
        found[table.canonical[result[node[copied]]]] = table.canonical[row[copied]]
        return found

    @cached_property
    def all(self) -> SliceStacks:
        """The stacks whose number of slices is that of most stacked bytes."""
        table, memory, row = self.recording.allocations, self.recording.allocations.canonical, self._written
        whole = largest_per(memory, table.size, len(table))
        leading = leading_dimension(self.recording)
        sliced = np.zeros(len(table), dtype=bool)  # another layout may have another first dimension
        sliced[memory[leading == self.iterations]] = True
        row = row[sliced[memory[row]]] if self.iterations > 1 else row[:0]
        size = whole[memory[row]] // max(self.iterations, 1)
        return SliceStacks(memory[row].astype(np.int64), self.row_value[row], self.forward.row_node[row], size)

    @cached_property
    def _written(self) -> I64:
        """The last row that the forward body writes in each memory that the backward body reads and never writes."""
        table, forward, memory = self.recording.allocations, self.forward, self.recording.allocations.canonical
        made = np.where(self.row_value >= 0, self.values.producer[self.row_value], -1)
        works = np.append(~self.program.op.isin(NO_WORK), False)[made] & (table.size > 0)
        written = np.flatnonzero(works & (forward.row_node >= 0) & (forward.buffer < 0))
        written = written[np.isin(memory[written], self.reads[0])]
        written = written[~np.isin(memory[written], memory[works & (self.backward.row_node >= 0)])]
        written = written[np.argsort(-made[written], kind="stable")]
        _, last = np.unique(memory[written], return_index=True)
        return written[last]

    @cached_property
    def iterations(self) -> int:
        """The first dimension of most stacked bytes."""
        table = self.recording.allocations
        rows = np.flatnonzero(np.isin(table.canonical, table.canonical[self._written]))
        counts, code = np.unique(leading_dimension(self.recording)[rows], return_inverse=True)
        if not len(counts):
            return 0
        return int(counts[np.argmax(np.bincount(code, np.where(counts[code] > 1, table.size[rows], 0), len(counts)))])

    @cached_property
    def _needs(self) -> CsrGraph:
        """The forward body's nodes, each with the nodes whose values it reads in the same iteration."""
        value, node = self.forward.reader
        source = self.forward.value_node[value]
        inner = (source >= 0) & (source != self.entrance)
        return CsrGraph.of(node[inner], source[inner], self.forward.graph.nodes)

    def computing(self, stacks: SliceStacks) -> Mask:
        """Mark the forward body's nodes that compute slices of these stacks."""
        return self._needs.reach(np.unique(stacks.writer))

    @cached_property
    def origin(self) -> I32:
        """Per value: the value of which it is a copy in the forward body, else itself."""
        values, forward = self.values, self.forward
        origin = np.arange(len(values), dtype=np.int32)
        value, use = values.used_value, values.use
        copies = (forward.node[use] >= 0) & self.program.op.isin(COPIES)[use] & (values.elements[value] > 0)
        value, use = value[copies], use[copies]
        order = np.argsort(values.elements[value], kind="stable")
        source = np.full(self.recording.length + 1, -1, dtype=np.int32)
        source[use[order]] = value[order]
        copied = np.flatnonzero(source[values.producer] >= 0)
        for _ in range(MAX_COPIES):
            origin[copied] = origin[source[values.producer[copied]]]
        return origin

    @cached_property
    def carried(self) -> Carried:
        """The carried values from which slices of stacks are computed."""
        values = self.values
        if self.entrance < 0:
            return Carried(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))
        value, node = self.forward.reader
        needed = np.unique(self.origin[value[self.computing(self.all)[node]]])
        found = needed[(values.producer[needed] == self.forward.position[self.entrance]) & ~self._stacked[needed]]
        # A value in another memory is as large as a value of the same shape in this memory.
        known, shapes = self.row_value >= 0, int(values.shape.max(initial=0)) + 1
        size = largest_per(values.shape[self.row_value[known]], self.recording.allocations.size[known], shapes)
        return Carried(
            found, np.where(size[values.shape[found]], size[values.shape[found]], 4 * values.elements[found])
        )

    @cached_property
    def _stacked(self) -> Mask:
        """Mark the stacks among the values of the forward body's parameter: values that only their writers read."""
        values, forward = self.values, self.forward
        known = np.flatnonzero(self.row_value >= 0)
        shapes, first = np.unique(values.shape[self.row_value[known]], return_index=True)
        count = np.zeros(int(values.shape.max(initial=0)) + 1, dtype=np.int64)
        count[shapes] = leading_dimension(self.recording)[known[first]]
        entering, entered = values.loop_carried
        inside = forward.value_node[entering] >= 0
        writer = np.full(len(values), -1, dtype=np.int32)
        writer[entered[inside]] = forward.value_node[entering[inside]]
        value, node = forward.reader
        others = marked(len(values), value[node != writer[value]])
        found: Mask = (count[values.shape] == self.iterations) & (writer >= 0) & ~others
        in_stack = np.isin(self.recording.allocations.canonical, self.all.memory) & (self.row_value >= 0)
        found[self.row_value[in_stack]] = True
        return found

    @cached_property
    def _written_from(self) -> tuple[I64, I32]:
        """The (stack, value) pairs: the values from which each stack's slice is computed."""
        value, node = self.forward.reader
        order = np.argsort(node, kind="stable")
        begin = np.searchsorted(node[order], np.arange(self.forward.graph.nodes + 1))
        operand, result = self.values.bundled
        alone = np.flatnonzero(~np.isin(self.all.value, result))
        writer = self.all.writer[alone]
        count = begin[writer + 1] - begin[writer]
        read = value[order[concatenate_ranges(begin[writer], count)]]
        several = np.isin(result, self.all.value)
        by_value = np.argsort(self.all.value, kind="stable")
        stack = by_value[np.searchsorted(self.all.value[by_value], result[several])]
        return np.r_[np.repeat(alone, count), stack], np.r_[read, operand[several]].astype(np.int32)

    @cached_property
    def _keeps(self) -> tuple[Mask, int]:
        stack, value = self._written_from
        source = self.forward.value_node[self.origin[value]]
        computed, keep = (np.zeros(len(self.all.memory), dtype=bool) for _ in range(2))
        computed[stack[(source >= 0) & (source != self.entrance)]] = True
        missing = 0
        for one, size in zip(self.carried.value.tolist(), self.carried.size.tolist(), strict=True):
            copies = np.unique(stack[self.origin[value] == one])
            copies = copies[~computed[copies] & ~keep[copies] & (self.all.slice[copies] == size)]
            keep[copies[:1]] = True
            missing += 0 if len(copies) else size
        return keep, missing

    @property
    def missing(self) -> int:
        """The bytes of carried values that no stack contains yet, per iteration."""
        return self._keeps[1]

    @cached_property
    def dropped(self) -> SliceStacks:
        """The stacks other than those of carried values."""
        return self.all.take(~self._keeps[0])


@memoize
def leading_dimension(recording: Recording) -> I64:
    """Return the first dimension of each row's shape, 0 for none."""
    return recording.allocations.shape.map(lambda text: (*dimensions(text), 0)[0], 0, np.int64)
