"""Instructions that only forward values: tuples and their elements, bitcasts, asynchronous halves, calls, loops.

A flow from one range of nodes to another means that both refer to the same memory.

Some asynchronous operations get their operands after their start, as TPUs offload gathers to their SparseCores:

    start  = ((), (), context)                  async-start(), calls=gather
    update = ((operands), result, context)      async-update(start, table, indices)
    done   = result                             async-done(update)

The update counts as the instruction that reads the operands and computes the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, take_or_missing
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.dataflow.nodes import NodeRanges, ResultNodes, expand_ranges, range_offsets
from tb_memplugin.readers.hlo.module.columns import sparse_numbers
from tb_memplugin.readers.hlo.module.tables import INSTRUCTIONS

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
        return self.nodes.value_of(node_buffer, self.nodes.operand(self.update, nth + 1))

    def results(self, node_buffer: I32) -> tuple[I64, I64, I32]:
        """Return (row, number among the update's results, value) of each result; one update may have several."""
        nodes, row = self.nodes, np.flatnonzero(self.body >= 0)
        elements = nodes.shapes.child_count[nodes.top(self.body[row])]
        count = np.maximum(elements, 1)
        nth = range_offsets(count, nodes.budget)
        row, in_tuple = np.repeat(row, count), np.repeat(elements > 0, count)
        top = nodes.top(self.body[row])
        node = np.where(in_tuple, nodes.shapes.child(top, nth), top)
        found = node_buffer[nodes.node_at(self.body[row], node)]
        known = (node >= 0) & (found >= 0)
        return row[known], nth[known], found[known].astype(np.int32)

    def pairs(self, node_buffer: I32) -> tuple[I32, I32]:
        """Return (operand, result) values of combined operations, which compute each result from one operand."""
        row, nth, result = self.results(node_buffer)
        operands = self.nodes.module.operands.count()[self.nodes.schedule.order[self.update]] - 1
        combined = (operands > 1) & (np.bincount(row, minlength=len(operands)) == operands)
        row, nth, result = row[combined[row]], nth[combined[row]], result[combined[row]]
        operand = self.nodes.value_of(node_buffer, self._operand(self.update[row], nth + 1))
        known = operand >= 0
        return operand[known], result[known]


# Instructions whose whole result is operand 0.
FORWARDING = {"bitcast", "opt-barrier", "add-dependency", "domain", "all-reduce-done", "async-update"}
# Halves of asynchronous operations: an element of their result is operand 0, or an element of it. None is the whole.
# {0} of copy-start is the copy and {1} its source; {0} of a collective is its operand and {1} its result.
HALVES: tuple[tuple[set[str], int | None, int | None], ...] = (
    ({"copy-start"}, 1, None),
    ({"send", "all-gather-start", "collective-permute-start"}, 0, None),
    ({"copy-done", "recv-done"}, None, 0),
    ({"all-gather-done", "collective-permute-done", "async-done"}, None, 1),
)
# The element of a start's result tuple that contains what it computes.
START_RESULT_ELEMENT = {"copy-start": 0, "all-gather-start": 1, "collective-permute-start": 1}
# Each link of an argument takes 20 microseconds. A call takes a few bytes, as does the computation that it calls again.
LINK_BYTES = 16384
CALLS = {"call", "async-start"}


@dataclass(frozen=True)
class Flows:
    """Ranges of nodes: `count[i]` nodes from `target[i]` share memory with those from `source[i]`; sorted by target."""

    target: I32
    source: I32
    count: I32

    def pairs(self, budget: ReadBudget) -> tuple[np.ndarray, np.ndarray]:
        """Return (target nodes, source nodes), one pair per node."""
        return expand_ranges(self.target, self.count, budget), expand_ranges(self.source, self.count, budget)


def find_flows(nodes: ResultNodes) -> Flows:
    """Find all flows in the direction of the schedule."""
    late = LateOperands.of(nodes)
    ranges = []
    for opcodes, into, out_of in ((FORWARDING, None, None), *HALVES):
        target = nodes.positions_of(opcodes)
        target = target[~np.isin(target, late.update)]
        source = nodes.operand(target, 0)
        ranges.append(nodes.link(target, source, nodes.element(target, into), nodes.element(source, out_of)))
    target = nodes.positions_of({"get-tuple-element"})
    source = nodes.operand(target, 0)
    index = sparse_numbers(nodes.module.tables[f"{INSTRUCTIONS}.tuple_index"], nodes.schedule.order[target])
    ranges.append(nodes.link(target, source, nodes.top(target), nodes.element(source, index)))
    target, source, nth = nodes.operands_of(nodes.positions_of({"tuple"}))
    ranges.append(nodes.link(target, source, nodes.element(target, nth), nodes.top(source)))
    target, source, nth = nodes.operands_of(nodes.positions_of({"async-start"}))
    operand = nodes.shapes.child(nodes.element(target, OPERANDS), nth)
    ranges.append(nodes.link(target, source, operand, nodes.top(source)))
    target, source, count = _concatenate([*ranges, *_calls(nodes), *late.flows()])
    order = np.argsort(target, kind="stable")
    return Flows(target[order], source[order], count[order])


def loop_back_flows(nodes: ResultNodes) -> Flows:
    """Find the flows from a loop body's result to its parameter, that is, to the next iteration."""
    ranges = [
        nodes.link_results(parameter, nodes.root(body))
        for p in nodes.positions_of({"while"}).tolist()
        for body in nodes.callees(p)[:1]
        for _, parameter in nodes.parameters(body)
    ]
    return Flows(*_concatenate(ranges))


def _calls(nodes: ResultNodes) -> list[NodeRanges]:
    """Link arguments to parameters and results to callers, for `call`, `async-start`, `while` and `conditional`.

    A plain loop suffices: such instructions are few, with few parameters each, as a loop carries one tuple.
    """
    ranges = []
    for p in nodes.positions_of({*CALLS, "while", "conditional"}).tolist():
        opcode = nodes.module.opcode[int(nodes.schedule.order[p])]
        here = np.array([p], np.int32)
        for branch, callee in enumerate(nodes.callees(p)):
            if callee < 0:
                continue
            parameters = nodes.parameters(callee)
            nodes.budget.charge(LINK_BYTES * (1 + len(parameters)))
            for number, parameter in parameters:
                argument = branch + 1 if opcode == "conditional" else number
                ranges.append(nodes.link_results(parameter, int(nodes.operand(here, argument)[0])))
            if opcode == "while" and branch:
                continue  # the second computation is the condition, whose result is not forwarded
            root = nodes.root(callee)
            if opcode == "async-start":  # (arguments, result, context)
                there = np.array([root], np.int32)
                ranges.append(nodes.link(here, there, nodes.element(here, 1), nodes.top(there)))
            else:
                ranges.append(nodes.link_results(p, root))
    return ranges


def _concatenate(ranges: list[NodeRanges]) -> NodeRanges:
    none = np.empty(0, dtype=np.int32)
    columns = zip((none, none, none), *ranges, strict=True)
    target, source, count = (np.concatenate(column).astype(np.int32) for column in columns)
    return target, source, count
