"""The compiled orderings, against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.analysis.dataflow.graph import CsrGraph
from tb_memplugin.native.graph.ordering import accesses, advance, delay, sorted_by, worth_advancing

NODES = 8
Edges = list[tuple[int, int]]

node = st.integers(0, NODES - 1)
forward_edges = st.lists(st.tuples(node, node).filter(lambda pair: pair[0] < pair[1]), max_size=20)
numbers = st.lists(st.integers(-3, 3), min_size=NODES, max_size=NODES)


def csr(pairs: Edges) -> CsrGraph:
    source, target = np.ascontiguousarray(np.array(pairs, dtype=np.int32).reshape(-1, 2).T)
    return CsrGraph.of(source, target, NODES)


def needs(pairs: Edges) -> CsrGraph:
    return csr([(target, source) for source, target in pairs])


@given(forward_edges, numbers)
def test_the_ready_node_of_the_least_priority_is_next(pairs: Edges, priority: list[int]) -> None:
    graph = csr(pairs)
    left, expected = set(range(NODES)), []
    while left:
        ready = [n for n in left if not any(target == n and source in left for source, target in pairs)]
        expected.append(min(ready, key=lambda n: (priority[n], n)))
        left.remove(expected[-1])
    assert sorted_by(np.array(priority, dtype=np.float64), graph.begin, graph.to).tolist() == expected


@given(st.permutations(range(NODES)), st.lists(st.tuples(st.integers(0, 4), node)))
def test_accesses_are_the_first_and_last_steps_of_each_buffer(step: list[int], pairs: Edges) -> None:
    buffer, by = np.ascontiguousarray(np.array(pairs, dtype=np.int32).reshape(-1, 2).T)
    at: list[list[int]] = [[step[n] for b, n in pairs if b == each] for each in range(5)]
    first, last = accesses(np.array(step), buffer, by, 5)
    assert first.tolist() == [min(steps, default=NODES) for steps in at]
    assert last.tolist() == [max(steps, default=-1) for steps in at]


def test_nodes_of_a_cycle_are_missing() -> None:
    graph = csr([(0, 1), (1, 2), (2, 1)])
    assert sorted_by(np.zeros(NODES), graph.begin, graph.to).tolist() == [0, 3, 4, 5, 6, 7]


@given(forward_edges, numbers)
def test_nodes_that_free_memory_are_marked_with_what_they_need(pairs: Edges, effect: list[int]) -> None:
    graph, total, marked = csr(pairs), list(effect), [False] * NODES
    for n in reversed(range(NODES)):
        readers = {target for source, target in pairs if source == n}
        if len(readers) == 1 and total[only := next(iter(readers))] < 0:
            total[n] += total[only]
        marked[n] = total[n] < 0 or (effect[n] <= 0 and any(marked[reader] for reader in readers))
    order = np.arange(NODES, dtype=np.int32)
    assert worth_advancing(order, graph.begin, graph.to, np.array(effect, dtype=np.int64)).tolist() == marked


@given(forward_edges, st.lists(st.booleans(), min_size=NODES, max_size=NODES))
def test_moved_nodes_stay_between_those_they_need_and_those_that_need_them(pairs: Edges, moved: list[bool]) -> None:
    order, marked = np.arange(NODES, dtype=np.int32), np.array(moved, dtype=np.uint8)
    early = advance(order, needs(pairs).begin, needs(pairs).to, marked)
    late = delay(order, csr(pairs).begin, csr(pairs).to, marked)
    for place in (early, late):
        assert all(place[source] < place[target] for source, target in pairs)
    for n in np.flatnonzero(marked).tolist():
        before = [early[source] for source, target in pairs if target == n]
        after = [late[target] for source, target in pairs if source == n]
        assert early[n] == (max(before) + 1e-4 if before else n)
        assert late[n] == (min(after) - 1e-4 if after else n)
