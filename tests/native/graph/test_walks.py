"""The compiled dataflow traversals, against plain Python."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_memplugin.native.graph.walks import derive, grouped, nearest, owners, reach, spread_labels

NODES = 9
Edges = list[tuple[int, int]]

node = st.integers(0, NODES - 1)
edges = st.lists(st.tuples(node, node), max_size=25)
weighted = st.lists(st.tuples(node, node, st.integers(0, 3), st.integers(0, 1)), max_size=20)


def i32(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def csr(pairs: Edges) -> tuple[np.ndarray, np.ndarray]:
    begin = [sum(source < n for source, _ in pairs) for n in range(NODES + 1)]
    return np.array(begin, dtype=np.int64), i32([target for _, target in sorted(pairs, key=lambda pair: pair[0])])


@given(st.lists(st.integers(-2, 6), max_size=20))
def test_grouped(keys: list[int]) -> None:
    begin, order = grouped(i32(keys), 5)
    groups = [order[a:b].tolist() for a, b in pairwise(begin.tolist())]
    assert groups == [[i for i, key in enumerate(keys) if key == group] for group in range(5)]


@given(edges, st.lists(node, max_size=3))
def test_reach(pairs: Edges, seeds: list[int]) -> None:
    seen, todo = set(seeds), deque(seeds)
    while todo:
        here = todo.popleft()
        for source, target in pairs:
            if source == here and target not in seen:
                seen.add(target)
                todo.append(target)
    assert np.flatnonzero(reach(*csr(pairs), i32(seeds))).tolist() == sorted(seen)


@given(edges, st.lists(st.integers(0, 15), min_size=NODES, max_size=NODES))
def test_spread_labels(pairs: Edges, labels: list[int]) -> None:
    label = np.array(labels, dtype=np.uint64)
    assert spread_labels(label, i32([s for s, _ in pairs]), i32([t for _, t in pairs]), 64)
    for bit in range(4):
        seeds = [n for n, given_ in enumerate(labels) if given_ >> bit & 1]
        assert [n for n in range(NODES) if int(label[n]) >> bit & 1] == np.flatnonzero(
            reach(*csr(pairs), i32(seeds))
        ).tolist()


def test_spread_labels_says_when_it_was_not_through() -> None:
    """Use a chain in reverse edge order, which takes one pass for each edge."""
    source, target = i32([3, 2, 1, 0]), i32([4, 3, 2, 1])
    label = np.array([1, 0, 0, 0, 0], dtype=np.uint64)
    assert not spread_labels(label, source, target, 2)
    assert spread_labels(label, source, target, 9)
    assert label.tolist() == [1] * 5


@given(edges, st.lists(st.integers(0, 1), min_size=NODES, max_size=NODES))
def test_owners(pairs: Edges, counts: list[int]) -> None:
    start = [n if n < 3 else -1 for n in range(NODES)]
    plain = list(start)
    for source, target in pairs:
        if plain[source] != -1 and counts[source] and plain[target] != plain[source]:
            plain[target] = plain[source] if plain[target] == -1 else -2
    owner = i32(start)
    owners(owner, i32([s for s, _ in pairs]), i32([t for _, t in pairs]), np.array(counts, dtype=np.uint8))
    assert owner.tolist() == plain


def paths(start: int, pairs: list[tuple[int, int, int, int]], ends: set[int]) -> dict[int, tuple[int, int]]:
    """Compute the least (kind, steps) to each end by Bellman-Ford. No path continues beyond an end."""
    best = {start: (0, 0)}
    for _ in range(NODES + 1):
        for at, to, steps, kind in pairs:
            if at in best and at not in ends:
                found = (max(best[at][0], kind), best[at][1] + steps)
                best[to] = min(best.get(to, found), found)
    return {end: cost for end, cost in best.items() if end in ends}


@given(weighted, st.lists(st.integers(-1, NODES - 1), min_size=1, max_size=3), st.sets(node, max_size=4))
def test_nearest(pairs: list[tuple[int, int, int, int]], starts: list[int], ends: set[int]) -> None:
    pairs = sorted(pairs, key=lambda pair: pair[0])
    begin = np.array([sum(pair[0] < n for pair in pairs) for n in range(NODES + 1)], dtype=np.int64)
    columns = i32([p[1] for p in pairs]), i32([p[2] for p in pairs]), np.array([p[3] for p in pairs], dtype=np.uint8)
    is_end = np.array([n in ends for n in range(NODES)], dtype=np.uint8)
    start, to, steps, kind = (column.tolist() for column in nearest(begin, *columns, i32(starts), is_end, 100))
    found = dict(zip(zip(start, to, strict=True), zip(kind, steps, strict=True), strict=True))
    truth = {
        (number, end): cost
        for number, at in enumerate(starts)
        if at >= 0
        for end, cost in paths(at, pairs, ends).items()
    }
    assert found.keys() == truth.keys()
    # If paths share a worse edge later, the one with more steps so far may win, because kinds are compared first.
    assert {pair: cost[0] for pair, cost in found.items()} == {pair: cost[0] for pair, cost in truth.items()}
    if not any(kind for *_, kind in pairs):
        assert found == truth


def test_nearest_visits_no_more_than_it_may() -> None:
    chain = np.arange(6, dtype=np.int64), i32([1, 2, 3, 4, 5]), i32([1] * 5), np.zeros(5, dtype=np.uint8)
    begin = np.r_[chain[0], 5]
    end = np.array([0] * 5 + [1], dtype=np.uint8)
    assert nearest(begin, *chain[1:], i32([0]), end, 6)[1].tolist() == [5]
    assert nearest(begin, *chain[1:], i32([0]), end, 5)[1].tolist() == []


# 0, 1: parameters   2 = add(0, 1)   3 = transpose(2)   4 = update(3, 1)   5 = dot(4, 0)   6 = multiply(5, 0)
BEGIN = np.array([0, 0, 0, 2, 3, 5, 7, 9], dtype=np.int64)
OPERAND = i32([0, 1, 2, 3, 1, 4, 0, 5, 0])
KIND = np.array([0, 0, 0, 1, 255, 255, 255, 0, 0], dtype=np.uint8)
WEIGHT = np.array([1, 1, 1, 0, 1, 1, 1], dtype=np.uint8)


@pytest.mark.parametrize(
    "leaf, found",
    [
        (2, {(0, 1, 0), (1, 1, 0)}),
        (3, {(0, 1, 0), (1, 1, 0)}),  # a transpose is not a step
        (4, {(0, 2, 1), (1, 2, 1)}),  # partially overwritten
        (5, set()),  # a product has no update form
        (6, {(0, 1, 0)}),
        (0, {(0, 0, 0)}),
        (7, set()),  # outside the computation
        (-1, set()),
    ],
)
def test_derive(leaf: int, found: set[tuple[int, int, int]]) -> None:
    first, stop = np.zeros(1, dtype=np.int64), np.full(1, 7, dtype=np.int64)
    number, parameter, steps, kind = derive(first, stop, i32([leaf]), BEGIN, OPERAND, KIND, WEIGHT, 100)
    assert set(zip(parameter.tolist(), steps.tolist(), kind.tolist(), strict=True)) == found
    assert set(number.tolist()) <= {0}


def test_derive_looks_at_no_more_than_it_may() -> None:
    twice = np.zeros(2, dtype=np.int64), np.full(2, 7, dtype=np.int64), i32([2, 2])
    assert len(derive(*twice, BEGIN, OPERAND, KIND, WEIGHT, 6)[0]) == 4
    assert len(derive(*twice, BEGIN, OPERAND, KIND, WEIGHT, 5)[0]) == 2


def test_derive_goes_nowhere_but_down() -> None:
    """Ignore operands that come later or are in another computation."""
    begin, operand = np.array([0, 1, 2, 2], dtype=np.int64), i32([1, 0, 2])
    like, one = np.zeros(3, dtype=np.uint8), np.ones(3, dtype=np.uint8)
    found = derive(np.zeros(1, np.int64), np.full(1, 2, np.int64), i32([1]), begin, operand, like, one, 100)
    assert found[1].tolist() == []
