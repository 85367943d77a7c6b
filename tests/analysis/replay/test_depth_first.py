from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph, depth_first


def graph(edges: list[tuple[int, int]], buffers: list[tuple[int, list[int]]]) -> ScheduleGraph:
    """Return a graph of edges, and of buffers as their size and the nodes that access them."""
    source, target = (np.array(ends, dtype=np.int32) for ends in zip(*edges, strict=True))
    accesses = [(number, node) for number, (_, nodes) in enumerate(buffers) for node in nodes]
    buffer, node = (np.array(column, dtype=np.int32) for column in zip(*accesses, strict=True))
    workspace = np.zeros(1 + max(map(max, edges)), dtype=np.int64)
    return ScheduleGraph(source, target, np.array([size for size, _ in buffers]), buffer, node, workspace)


def backward(layers: int) -> ScheduleGraph:
    """Return a backward pass, each of whose weight gradients (odd nodes but the last) waits for the end.

    Nodes 0 to layers - 1 pass a gradient of 10 bytes on; each has a weight gradient of 1 byte, and all are summed up.
    """
    passed = [(i, i + 1) for i in range(layers - 1)]
    weights = [(i, layers + i) for i in range(layers)]
    summed = [(layers + i, 2 * layers) for i in range(layers)]
    big = [(10, [i, *([i + 1] if i < layers - 1 else []), layers + i]) for i in range(layers)]
    small = [(1, [layers + i, 2 * layers]) for i in range(layers)]
    return graph(passed + weights + summed, big + small)


def test_an_order_contains_each_operation_once_after_those_it_needs() -> None:
    program = backward(6)
    order = depth_first(program)
    step = np.argsort(order)
    assert sorted(order.tolist()) == list(range(program.nodes))
    assert (step[program.source] < step[program.target]).all()


def test_depth_first_finishes_one_operand_before_it_begins_the_next() -> None:
    chains = graph([(0, 1), (2, 3), (1, 4), (3, 4)], [(8, [0, 1]), (1, [1, 4]), (8, [2, 3]), (1, [3, 4])])
    order = depth_first(chains).tolist()
    assert order in ([0, 1, 2, 3, 4], [2, 3, 0, 1, 4])
