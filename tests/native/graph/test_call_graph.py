"""The compiled walks over a stack tree, against plain Python."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.graph.call_graph import HIDDEN, weave, with_callees, with_callers

same_each_time = settings(derandomize=True)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[bool]]:
    size = draw(st.integers(0, 30))
    parent = [draw(st.integers(-1, node - 1)) for node in range(size)]
    return parent, draw(st.lists(st.booleans(), min_size=size, max_size=size))


def callers(parent: list[int], node: int) -> list[int]:
    """Return a node and its ancestors."""
    path = []
    while node >= 0:
        path.append(node)
        node = parent[node]
    return path


@same_each_time
@given(trees())
def test_marks_spread_to_callers_and_to_callees(tree: tuple[list[int], list[bool]]) -> None:
    parent, marked = tree
    paths = [callers(parent, node) for node in range(len(parent))]
    above = {node for path, mark in zip(paths, marked, strict=True) if mark for node in path}
    below = [any(marked[node] for node in path) for path in paths]
    column, mask = np.array(parent, np.int32), np.array(marked, bool)
    assert with_callers(column, mask).tolist() == [node in above for node in range(len(parent))]
    assert with_callees(column, mask).tolist() == below
    assert mask.tolist() == marked


def test_many_calls_between_many_functions() -> None:
    """More pairs of functions than the table of calls has room for at first; each node is a function or hidden."""
    random = np.random.default_rng(0)
    n, functions = 3_000, 200
    parent = np.array([-1, *(int(random.integers(max(0, node - 50), node)) for node in range(1, n))], np.int32)
    entity = random.integers(HIDDEN, functions, n).astype(np.int32)
    own = random.integers(0, 9, (n, 2))
    cum = np.zeros((functions, 2), np.int64)
    amounts: dict[tuple[int, int], int] = {}
    above = parent.tolist()
    for node in range(n):
        names = [name for name in entity[callers(above, node)].tolist() if name >= 0]
        for name in set(names):
            cum[name] += own[node]
        for call in {(caller, callee) for callee, caller in pairwise(names) if caller != callee}:
            amounts[call] = amounts.get(call, 0) + int(own[node, 0])
    _, found, caller, callee, amount, residual = weave(parent, entity, functions, own)
    assert (found == cum).all()
    assert dict(zip(zip(caller.tolist(), callee.tolist(), strict=True), amount[:, 0].tolist(), strict=True)) == amounts
    assert not residual.any()
    flat, alone, *columns = weave(parent, entity, functions, own, with_calls=False)
    no_calls: list[Any] = [*columns]
    assert (alone == cum).all() and (flat == weave(parent, entity, functions, own)[0]).all()
    assert [len(column) for column in no_calls] == [0] * 4
