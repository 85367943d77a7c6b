"""Instructions that only forward values: tuples and their elements, bitcasts, asynchronous halves, calls, loops.

A flow from one range of nodes to another means that both refer to the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.dataflow.late_operands import LateOperands
from tb_memplugin.readers.hlo.dataflow.nodes import (
    NodeRanges,
    ResultNodes,
    expand_ranges,
    range_offsets,
    take_or_missing,
)
from tb_memplugin.readers.hlo.module.lists import sparse_numbers
from tb_memplugin.readers.hlo.module.tables import INSTRUCTIONS

# Instructions whose whole result is operand 0.
FORWARDING = {"bitcast", "opt-barrier", "add-dependency", "domain", "all-reduce-done", "async-update"}
# Halves of asynchronous operations. The start's result tuple has its operand at this element, and the done's result is
# this element of the start's. {0} of copy-start is the copy and {1} its source; {0} of a collective is its operand and
# {1} its result.
START_OPERAND_ELEMENT = {"copy-start": 1, "send": 0, "all-gather-start": 0, "collective-permute-start": 0}
DONE_RESULT_ELEMENT = {
    "copy-done": 0,
    "recv-done": 0,
    "all-gather-done": 1,
    "collective-permute-done": 1,
    "async-done": 1,
}
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
    ranges = [_forwarded(nodes, late), _elements(nodes), _tuples(nodes), *_asynchronous(nodes), *_calls(nodes)]
    ranges += late.flows()
    target, source, count = _concatenate(ranges)
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


def _forwarded(nodes: ResultNodes, late: LateOperands) -> NodeRanges:
    forwarding = nodes.positions_of(FORWARDING)
    target = forwarding[~np.isin(forwarding, late.update)]
    source = nodes.operand(target, 0)
    return nodes.link(target, source, nodes.top(target), nodes.top(source))


def _elements(nodes: ResultNodes) -> NodeRanges:
    target = nodes.positions_of({"get-tuple-element"})
    source = nodes.operand(target, 0)
    index = sparse_numbers(nodes.module.tables[f"{INSTRUCTIONS}.tuple_index"], nodes.schedule.order[target])
    return nodes.link(target, source, nodes.top(target), nodes.element(source, index))


def _tuples(nodes: ResultNodes) -> NodeRanges:
    tuples = nodes.positions_of({"tuple"})
    lists, rows = nodes.module.operands, nodes.schedule.order[tuples]
    counts = lists.count()[rows]
    operands = lists.values[expand_ranges(lists.begin[rows], counts, nodes.budget)]
    target, source = np.repeat(tuples, counts), take_or_missing(nodes.schedule.position, operands)
    return nodes.link(target, source, nodes.element(target, range_offsets(counts, nodes.budget)), nodes.top(source))


def _asynchronous(nodes: ResultNodes) -> list[NodeRanges]:
    ranges = []
    for opcode, element in START_OPERAND_ELEMENT.items():
        target = nodes.positions_of({opcode})
        source = nodes.operand(target, 0)
        ranges.append(nodes.link(target, source, nodes.element(target, element), nodes.top(source)))
    for opcode, element in DONE_RESULT_ELEMENT.items():
        target = nodes.positions_of({opcode})
        source = nodes.operand(target, 0)
        ranges.append(nodes.link(target, source, nodes.top(target), nodes.element(source, element)))
    return ranges


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
    target, source, count = zip((none, none, none), *ranges, strict=True)
    return (
        np.concatenate(target).astype(np.int32),
        np.concatenate(source).astype(np.int32),
        np.concatenate(count).astype(np.int32),
    )
