"""Asynchronous operations that get their operands after their start, as TPUs offload gathers to their SparseCores.

    start  = ((), (), context)                  async-start(), calls=gather
    update = ((operands), result, context)      async-update(start, table, indices)
    done   = result                             async-done(update)

The update counts as the instruction that reads the operands and computes the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.readers.hlo.dataflow.nodes import NodeRanges, ResultNodes, range_offsets, take_or_missing

OPERANDS, RESULT, CONTEXT = 0, 1, 2  # elements of the update's result


@dataclass(frozen=True, eq=False)
class LateOperands:
    """The updates that bring operands, one row each."""

    nodes: ResultNodes
    update: I32  # positions
    start: I32
    body: I32  # the last position of the computation that the start calls

    @staticmethod
    def of(nodes: ResultNodes) -> LateOperands:
        counts = nodes.module.operands.count()
        update = nodes.positions_of({"async-update"})
        update = update[counts[nodes.schedule.order[update]] > 1]
        start = nodes.operand(update, 0)
        update, start = update[start >= 0], start[start >= 0]
        called = nodes.module.callees.nth(nodes.schedule.order[start], 0)
        update, start, called = update[called >= 0], start[called >= 0], called[called >= 0]
        root = nodes.module.instruction_index.rows(nodes.module.computations["root_id"][called])
        return LateOperands(nodes, update, start, take_or_missing(nodes.schedule.position, root))

    def flows(self) -> list[NodeRanges]:
        """Return the flows into the elements of the updates' results."""
        nodes = self.nodes
        counts = nodes.module.operands.count()[nodes.schedule.order[self.update]] - 1
        nth, update = range_offsets(counts, nodes.budget), np.repeat(self.update, counts)
        operands = nodes.element(update, OPERANDS)
        source = self._operand(update, nth + 1)
        return [
            nodes.link(update, source, nodes.shapes.child(operands, nth), nodes.top(source)),
            nodes.link(self.update, self.body, nodes.element(self.update, RESULT), nodes.top(self.body)),
            nodes.link(
                self.update, self.start, nodes.element(self.update, CONTEXT), nodes.element(self.start, CONTEXT)
            ),
        ]

    def _operand(self, positions: I32, nth: I64) -> I32:
        lists = self.nodes.module.operands
        rows = lists.values[lists.begin[self.nodes.schedule.order[positions]] + nth]
        return take_or_missing(self.nodes.schedule.position, rows)

    def operand_values(self, node_buffer: I32, nth: int) -> I32:
        """Return the value of each update's n-th late operand, -1 where there is none."""
        source = self.nodes.operand(self.update, nth + 1)
        return np.where(source >= 0, node_buffer[self.nodes.base[np.maximum(source, 0)]], -1).astype(np.int32)

    def results(self, node_buffer: I32) -> tuple[I64, I64, I32]:
        """Return (row, number among the update's results, value) of each result; one update may have several."""
        nodes, row = self.nodes, np.flatnonzero(self.body >= 0)
        elements = nodes.shapes.child_count[nodes.top(self.body[row])]
        count = np.maximum(elements, 1)
        nth = range_offsets(count, nodes.budget)
        row, in_tuple = np.repeat(row, count), np.repeat(elements > 0, count)
        top = nodes.top(self.body[row])
        node = np.where(in_tuple, nodes.shapes.child(top, nth), top)
        found = node_buffer[nodes.base[self.body[row]] + node - nodes.shapes.begin[nodes.shape[self.body[row]]]]
        known = (node >= 0) & (found >= 0)
        return row[known], nth[known], found[known].astype(np.int32)

    def pairs(self, node_buffer: I32) -> tuple[I32, I32]:
        """Return (operand, result) values of combined operations, which compute each result from one operand."""
        row, nth, result = self.results(node_buffer)
        operands = self.nodes.module.operands.count()[self.nodes.schedule.order[self.update]] - 1
        combined = (operands > 1) & (np.bincount(row, minlength=len(operands)) == operands)
        row, nth, result = row[combined[row]], nth[combined[row]], result[combined[row]]
        source = self._operand(self.update[row], nth + 1)
        operand = np.where(source >= 0, node_buffer[self.nodes.base[np.maximum(source, 0)]], -1)
        known = operand >= 0
        return operand[known].astype(np.int32), result[known]

    def is_update(self) -> Mask:
        """Mark the positions of the updates."""
        marked = np.zeros(len(self.nodes.opcode), dtype=bool)
        marked[self.update] = True
        return marked
