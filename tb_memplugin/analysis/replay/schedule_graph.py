"""A program as operations that a compiler may run in another order, XLA's depth-first order, and its loops."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import F64, I32, I64, sum_over_time
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.ordering import accesses, advance, delay, sorted_by, worth_advancing

MAX_ROUNDS = 16
MAX_IDLE_ROUNDS = 4  # rounds without a lower peak after which the search ends; consecutive rounds may undo each other


class BufferSteps(NamedTuple):
    """Steps of an order: the first and the last access of each buffer; last is -1 without an access."""

    first: I64
    last: I64


@dataclass(frozen=True, eq=False)
class ScheduleGraph:
    """Nodes, which are operations, and buffers, which exist from their first to their last access.

    Nodes are numbered in the order in which the program runs them. A node that contains others, such as a loop, is one
    operation with a workspace. `constant` is the memory that the program needs throughout.
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
        """Return an order by priority, in which each node comes after the nodes it needs; shorter if there is none."""
        return sorted_by(priority.astype(np.float64), self.forward.begin, self.forward.to)

    def lifetimes(self, order: I32) -> BufferSteps:
        step = np.empty(self.nodes, dtype=np.int64)
        step[order] = np.arange(self.nodes)
        return BufferSteps(*accesses(step, self.buffer, self.node, len(self.size)))

    def live_bytes(self, order: I32) -> I64:
        """Return the live bytes at each step of an order."""
        first, last = self.lifetimes(order)
        used = last >= 0
        live = sum_over_time(self.nodes, first[used], last[used] + 1, self.size[used])
        return self.constant + live + self.workspace[order]

    def peak(self, order: I32) -> int:
        return int(self.live_bytes(order).max(initial=self.constant))


def lower_peak(graph: ScheduleGraph, order: I32) -> I32:
    """Search for an order with a lower peak, in which operations that free memory run early, and others late.

    The result need not have the lowest peak: finding that is NP-hard.
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


def depth_first(graph: ScheduleGraph) -> I32:
    """Return XLA's depth-first order: each operation after those it needs, these by size of subtree, largest first."""
    begin, needs = graph.backward.begin.tolist(), graph.backward.to.tolist()
    users = np.diff(graph.forward.begin)
    extra, total = _subtrees(graph, users)
    found, seen = [], np.zeros(graph.nodes, dtype=bool)
    for root in np.flatnonzero(users == 0).tolist():
        stack: list[tuple[int, Iterator[int]]] = []
        ahead: int | None = root
        while ahead is not None or stack:
            if ahead is not None and not seen[ahead]:
                seen[ahead] = True
                before = needs[begin[ahead] : begin[ahead + 1]]
                stack.append((ahead, iter(sorted(before, key=lambda node: (-extra[node], -total[node], node)))))
            node, rest = stack[-1]
            ahead = next(rest, None)
            if ahead is None:
                found.append(node)
                stack.pop()
    return np.array(found, dtype=np.int32)


def _subtrees(graph: ScheduleGraph, users: I64) -> tuple[list[int], list[int]]:
    """Return, for each operation, the users beyond the first and the bytes of all that it needs; both are capped."""
    begin, needs = graph.backward.begin.tolist(), graph.backward.to.tolist()
    first, last = graph.lifetimes(graph.own_order)
    used = last >= 0
    own = np.zeros(graph.nodes, dtype=np.int64)
    np.add.at(own, first[used], graph.size[used])
    most = np.cumsum(own).tolist()
    extra, total = np.maximum(users - 1, 0).tolist(), own.tolist()
    for node in range(graph.nodes):
        before = needs[begin[node] : begin[node + 1]]
        extra[node] = min(extra[node] + sum(extra[other] for other in before), node)
        total[node] = min(total[node] + sum(total[other] for other in before), most[node])
    return extra, total


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops of a program, inner loops before the outer loops that contain them."""

    position: I64  # of the loop's instruction
    first: I64  # of its body
    innermost: I32  # per position: the innermost loop whose body contains it, -1 for none

    def __len__(self) -> int:
        return len(self.position)

    @property
    def parent(self) -> I32:
        """The loop that contains each loop, -1 for none."""
        return self.innermost[self.position]


@memoize
def program_loops(recording: Recording) -> Loops:
    """Return the loops of a program. The schedule has a loop's condition and body right before the loop."""
    program = recording.program
    innermost = np.full(recording.length, -1, dtype=np.int32)
    if program is None or not recording.length:
        return Loops(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), innermost)
    code = program.computation.codes
    found = np.flatnonzero(program.op.isin({"while"}))
    found = found[found > 0]
    found = found[code[found - 1] != code[found]]
    length = np.int64(recording.length)
    place = np.sort(code.astype(np.int64) * length + np.arange(length))  # positions of each computation
    before = np.searchsorted(place, code[found] * length + found) - 1
    # A computation that is called twice occurs twice; the caller's own positions are between the two.
    same = (before >= 0) & (place[before] // length == code[found])
    start = np.where(same, place[before] % length + 1, 0)
    first = place[np.searchsorted(place, code[found - 1] * length + start)] % length
    for number, (begin, loop) in enumerate(zip(first.tolist(), found.tolist(), strict=True)):
        inside = innermost[begin:loop]
        inside[inside < 0] = number
    return Loops(found.astype(np.int64), first, innermost)
