"""The order in which XLA's depth-first scheduler runs a program, as it does without the latency-hiding scheduler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph
from tb_memplugin.model.arrays import I32, I64


def depth_first(graph: ScheduleGraph) -> I32:
    """Return the operations, each after those it needs, largest subtree first, as XLA's DFS scheduler orders them."""
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
    """Return for each operation the users beyond the first, and the bytes, of all that it needs; both are capped."""
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
