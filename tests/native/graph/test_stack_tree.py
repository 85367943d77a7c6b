"""The compiled tree of stacks, against a dictionary of complete stacks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.graph.stack_tree import Chains

PLACES = 6
# Frames of each location, innermost first: usually one, sometimes two or none.
frames_of_places = st.lists(st.lists(st.integers(0, 4), max_size=2), min_size=PLACES, max_size=PLACES)
stacks_of_places = st.lists(st.lists(st.integers(0, PLACES - 1), max_size=5), max_size=12)


def frames(stack: list[int], places: list[list[int]]) -> list[int]:
    """Return the stack's frames, innermost first."""
    return [frame for place in stack for frame in places[place]]


def walked(leaf: int, parent: np.ndarray, frame: np.ndarray) -> list[int]:
    found = []
    while leaf >= 0:
        found.append(int(frame[leaf]))
        assert parent[leaf] < leaf
        leaf = int(parent[leaf])
    return found


@settings(max_examples=300, derandomize=True)
@given(frames_of_places, stacks_of_places, st.integers(0, 12))
def test_a_stack_is_the_way_up_from_its_leaf_and_equal_beginnings_share_their_nodes(
    places: list[list[int]], stacks: list[list[int]], cut: int
) -> None:
    first = np.cumsum([0, *map(len, places)], dtype=np.int64)
    chains = Chains(first, np.array([frame for place in places for frame in place], dtype=np.int32))
    leaves: list[int] = []
    for part in (stacks[:cut], stacks[cut:]):
        length = np.array([len(stack) for stack in part], dtype=np.int64)
        place = np.array([p for stack in part for p in stack], dtype=np.int32)
        leaves += chains.add(length, place).tolist()
    parent, frame = chains.tree()
    assert [walked(leaf, parent, frame) for leaf in leaves] == [frames(stack, places) for stack in stacks]
    outer = {tuple(frames(stack, places)[i:]) for stack in stacks for i in range(len(frames(stack, places)))}
    assert len(parent) == len(outer)


def test_a_tree_larger_than_its_first_table() -> None:
    n = 20_000
    chains = Chains(np.arange(n + 1), np.arange(n, dtype=np.int32))
    leaf = chains.add(np.full(n, 2), np.stack([np.arange(n), np.zeros(n, int)], axis=1).astype(np.int32).ravel())
    parent, frame = chains.tree()
    assert len(parent) == n + 1
    assert (frame[leaf] == np.arange(n)).all()
    assert (parent[leaf] == 0).all()
