"""The orders in which XLA's memory schedulers run a program, as they do without the latency-hiding scheduler."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph
from tb_memplugin.model.arrays import I32, I64

MAX_LEFT = 2  # accesses of a buffer: after all but one of them, the last one frees it


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


def most_freed_first(graph: ScheduleGraph) -> I32:
    """Return the operations, each after those it needs, most bytes freed first, as XLA's list scheduler orders them."""
    begin, users = graph.forward.begin.tolist(), graph.forward.to.tolist()
    needed = np.diff(graph.backward.begin).tolist()
    size, left = graph.size.tolist(), np.bincount(graph.buffer, minlength=len(graph.size)).tolist()
    accessed: list[list[int]] = [[] for _ in range(graph.nodes)]
    accessing: list[list[int]] = [[] for _ in size]
    for buffer, node in zip(graph.buffer.tolist(), graph.node.tolist(), strict=True):
        accessed[node].append(buffer)
        accessing[buffer].append(node)
    begun = [False] * len(size)

    def priority(node: int) -> tuple[int, int, int]:
        freed = sum(size[b] for b in accessed[node] if left[b] == 1)
        return sum(size[b] for b in accessed[node] if not begun[b]) - freed, begin[node] - begin[node + 1], node

    current = {node: priority(node) for node, count in enumerate(needed) if not count}
    heap, found = sorted(current.values()), []
    while heap:
        key = heapq.heappop(heap)
        node = key[-1]
        if current.get(node) != key:
            continue
        del current[node]
        found.append(node)
        again = set()
        for buffer in accessed[node]:
            if not begun[buffer] or left[buffer] <= MAX_LEFT:
                again.update(accessing[buffer])
            begun[buffer] = True
            left[buffer] -= 1
        for user in users[begin[node] : begin[node + 1]]:
            needed[user] -= 1
            if not needed[user]:
                current[user] = priority(user)
                heapq.heappush(heap, current[user])
        for other in again & current.keys():
            if (key := priority(other)) != current[other]:
                current[other] = key
                heapq.heappush(heap, key)
    return np.array(found, dtype=np.int32)
