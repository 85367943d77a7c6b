"""Which instructions only pass values on, and where to.

A flow says that some nodes show the same memory as others: through tuple, get-tuple-element, bitcast, the halves of
asynchronous operations, calls, loops and branches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.readers.hlo.dataflow.nodes import Nodes, Range, at, spread, within

# The whole result shows operand 0.
PASS_ON = {"bitcast", "opt-barrier", "add-dependency", "domain", "all-reduce-done", "async-update"}
# Asynchronous halves: the start's tuple shows its operand at one element, the done shows one element of the start.
# copy-start's {0} is the copy and {1} its source; a collective's {0} is its operand and {1} its result.
START_SHOWS_OPERAND = {"copy-start": 1, "send": 0, "all-gather-start": 0, "collective-permute-start": 0}
DONE_SHOWS_START = {
    "copy-done": 0,
    "recv-done": 0,
    "all-gather-done": 1,
    "collective-permute-done": 1,
    "async-done": 1,
}
CALLS = {"call", "async-start"}


@dataclass(frozen=True)
class Flows:
    """`count[i]` nodes from `target[i]` on show those from `source[i]` on; by rising target."""

    target: I32
    source: I32
    count: I32

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """(target node, source node), one pair per node."""
        return spread(self.target, self.count), spread(self.source, self.count)


def flows(nodes: Nodes) -> Flows:
    """All flows that go with the schedule."""
    pieces = [_pass_on(nodes), _elements(nodes), _tuples(nodes), *_asynchronous(nodes), *_calls(nodes)]
    target, source, count = _stack(pieces)
    order = np.argsort(target, kind="stable")
    return Flows(target[order], source[order], count[order])


def back_edges(nodes: Nodes) -> Flows:
    """From a loop body's result to its parameter: the next turn, against the schedule."""
    pieces = [
        nodes.whole(parameter, nodes.root(body))
        for p in nodes.where({"while"}).tolist()
        for body in nodes.callees(p)[:1]
        for _, parameter in nodes.parameters(body)
    ]
    return Flows(*_stack(pieces))


def _pass_on(nodes: Nodes) -> Range:
    target = nodes.where(PASS_ON)
    source = nodes.operand(target, 0)
    return nodes.link(target, source, nodes.top(target), nodes.top(source))


def _elements(nodes: Nodes) -> Range:
    target = nodes.where({"get-tuple-element"})
    source = nodes.operand(target, 0)
    index = nodes.module.instructions["tuple_index"][nodes.schedule.order[target]]
    return nodes.link(target, source, nodes.top(target), nodes.element(source, index))


def _tuples(nodes: Nodes) -> Range:
    tuples = nodes.where({"tuple"})
    lists, rows = nodes.module.operands, nodes.schedule.order[tuples]
    counts = lists.count()[rows]
    target = np.repeat(tuples, counts)
    source = at(nodes.schedule.position, lists.values[spread(lists.begin[rows], counts)])
    return nodes.link(target, source, nodes.element(target, within(counts)), nodes.top(source))


def _asynchronous(nodes: Nodes) -> list[Range]:
    pieces = []
    for opcode, element in START_SHOWS_OPERAND.items():
        target = nodes.where({opcode})
        source = nodes.operand(target, 0)
        pieces.append(nodes.link(target, source, nodes.element(target, element), nodes.top(source)))
    for opcode, element in DONE_SHOWS_START.items():
        target = nodes.where({opcode})
        source = nodes.operand(target, 0)
        pieces.append(nodes.link(target, source, nodes.top(target), nodes.element(source, element)))
    return pieces


def _calls(nodes: Nodes) -> list[Range]:
    """Arguments into parameters, results out: `call`, `async-start`, `while`, `conditional`.

    There are few of them, and few parameters each (a loop carries one tuple), so this is a plain loop.
    """
    pieces = []
    for p in nodes.where({*CALLS, "while", "conditional"}).tolist():
        opcode = nodes.module.opcode[int(nodes.schedule.order[p])]
        here = np.array([p], np.int32)
        for branch, callee in enumerate(nodes.callees(p)):
            if callee < 0:
                continue
            for number, parameter in nodes.parameters(callee):
                argument = branch + 1 if opcode == "conditional" else number
                pieces.append(nodes.whole(parameter, int(nodes.operand(here, argument)[0])))
            if opcode == "while" and branch:
                continue  # its second computation is the condition, whose result goes nowhere
            root = nodes.root(callee)
            if opcode == "async-start":  # (arguments, result, context)
                there = np.array([root], np.int32)
                pieces.append(nodes.link(here, there, nodes.element(here, 1), nodes.top(there)))
            else:
                pieces.append(nodes.whole(p, root))
    return pieces


def _stack(pieces: list[Range]) -> Range:
    none = np.empty(0, dtype=np.int32)
    target, source, count = zip((none, none, none), *pieces, strict=True)
    return (
        np.concatenate(target).astype(np.int32),
        np.concatenate(source).astype(np.int32),
        np.concatenate(count).astype(np.int32),
    )
