"""A program as operations that a compiler may run in another order, and the temporary buffers that they access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph
from tb_memplugin.model.arrays import F64, I32, I64
from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.native.graph.ordering import accesses, advance, delay, sorted_by, worth_advancing

MAX_ROUNDS = 16
MAX_IDLE_ROUNDS = 4  # rounds without a lower peak; two in a row undo each other


class BufferSteps(NamedTuple):
    """Steps of an order, from the first to the last access of each buffer; last is -1 without any."""

    first: I64
    last: I64


@dataclass(frozen=True, eq=False)
class ScheduleGraph:
    """Nodes, which are operations, and buffers, which exist from their first to their last access.

    Nodes are numbered in the order in which the program runs them. A node that contains others, as a loop does, is one
    operation with a workspace. `constant` is memory of the whole program.
    """

    source: I32  # per edge: the node that runs before `target`
    target: I32
    size: I64  # per buffer
    buffer: I32  # per access
    node: I32  # per access
    workspace: I64  # per node: bytes of buffers that exist only while it runs
    constant: int = 0

    @property
    def nodes(self) -> int:
        return len(self.workspace)

    @cached_property
    def forward(self) -> CsrGraph:
        return CsrGraph.of(self.source, self.target, self.nodes)

    @cached_property
    def backward(self) -> CsrGraph:
        return CsrGraph.of(self.target, self.source, self.nodes)

    @property
    def own_order(self) -> I32:
        return np.arange(self.nodes, dtype=np.int32)

    def sorted_by(self, priority: F64) -> I32:
        """Return an order in which each node comes after those it needs, else by priority; shorter if there is none."""
        return sorted_by(priority.astype(np.float64), self.forward.begin, self.forward.to)

    def lifetimes(self, order: I32) -> BufferSteps:
        step = np.empty(self.nodes, dtype=np.int64)
        step[order] = np.arange(self.nodes)
        return BufferSteps(*accesses(step, self.buffer, self.node, len(self.size)))

    def live_bytes(self, order: I32) -> I64:
        """Return the live bytes at each step of an order."""
        first, last = self.lifetimes(order)
        used = last >= 0
        change = np.zeros(self.nodes + 1, dtype=np.int64)
        np.add.at(change, first[used], self.size[used])
        np.add.at(change, last[used] + 1, -self.size[used])
        live: I64 = self.constant + np.cumsum(change[:-1]) + self.workspace[order]
        return live

    def peak(self, order: I32) -> int:
        return int(self.live_bytes(order).max(initial=self.constant))


def lower_peak(graph: ScheduleGraph, order: I32) -> I32:
    """Return an order with a lower peak, if one is found: operations that free memory run early, others late.

    The least peak over all orders is not known; finding it is NP-hard.
    """
    best, least, idle = order, graph.peak(order), 0
    ahead, back = graph.forward, graph.backward
    for turn in range(MAX_ROUNDS):
        first, last = graph.lifetimes(order)
        used = (last >= 0) & (graph.size > 0)
        effect = np.zeros(graph.nodes, dtype=np.int64)
        np.add.at(effect, order[first[used]], graph.size[used])
        np.add.at(effect, order[last[used]], -graph.size[used])
        if turn % 2:
            place = delay(order, ahead.begin, ahead.to, (effect >= 0).astype(np.uint8))
        else:
            place = advance(order, back.begin, back.to, worth_advancing(order, ahead.begin, ahead.to, effect))
        order = order[np.argsort(place[order], kind="stable")]
        found = graph.peak(order)
        idle = 0 if found < least else idle + 1
        if found < least:
            best, least = order, found
        if idle == MAX_IDLE_ROUNDS:
            break
    return best
