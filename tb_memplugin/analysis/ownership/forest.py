"""Forests of labeled nodes, into which rows are classified, and layers that repeat in one, merged as `layer_*`."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import F64, I32, I64, U8, Mask
from tb_memplugin.model.text import Text
from tb_memplugin.native.row_groups import group_rows

Weights = TypeVar("Weights", I64, F64)

MAX_DEPTH = 256  # deeper rows belong to the node at this depth; real stacks are up to 221 frames deep


class Forest(NamedTuple):
    """Trees over all rows of a recording, live or not.

    Nodes are in preorder: the subtree of node i is the nodes i to end[i] - 1.
    """

    label: Text
    parent: I32  # -1 for a root
    end: I32
    merged: I32  # how many nodes were merged into this one; 1 for none
    framework: U8  # 1: a frame of a framework or of the runtime
    leaf: I32  # per row of the recording, its node; -1 for none


class ForestBuilder:
    """A forest under construction. Nodes are numbered in the order they are added, parents before children."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.label: list[str] = []
        self.framework: list[bool] = []
        self.depth: list[int] = []
        self._nodes: dict[tuple[int, str], int] = {}

    def child(self, parent: int, label: str, *, framework: bool = False) -> int:
        """Return the node with that label below `parent` (-1: a root), added if needed."""
        if parent >= 0 and self.depth[parent] >= MAX_DEPTH:
            return parent
        node = self._nodes.setdefault((parent, label), len(self.parent))
        if node == len(self.parent):
            self.parent.append(parent)
            self.label.append(label)
            self.framework.append(framework)
            self.depth.append(self.depth[parent] + 1 if parent >= 0 else 0)
        return node

    def path(self, labels: Iterable[str]) -> int:
        """Return the node at the end of a path from a root, added if needed."""
        node, known = -1, self._nodes
        for label in labels:
            below = known.get((node, label))
            node = self.child(node, label) if below is None else below
        return node

    def rows(self, columns: Sequence[npt.NDArray[Any]], path: Callable[[int], Iterable[str]]) -> I32:
        """Return the node of each row. `path` is called for the first of all rows that agree in all columns.

        Columns are integers or booleans.
        """
        key, first = group_rows(columns)
        nodes = np.empty(len(first), dtype=np.int32)
        for code in np.argsort(first).tolist():
            nodes[code] = self.path(path(int(first[code])))
        return nodes[key]

    def forest(self, leaf: I32, merged: Sequence[int] | None = None) -> Forest:
        """Return the forest with `leaf[row]` as each row's node. Children keep the order in which they were added."""
        n = len(self.parent)
        size = [1] * n
        for node in range(n - 1, -1, -1):
            if self.parent[node] >= 0:
                size[self.parent[node]] += size[node]
        preorder, free = [0] * n, [0] * (n + 1)  # free[parent]: index of its next child; the last entry is for roots
        for node, parent in enumerate(self.parent):
            preorder[node] = free[parent]
            free[parent] += size[node]
            free[node] = preorder[node] + 1
        index = np.array(preorder, dtype=np.int64)
        order = np.argsort(index)
        parents = np.array(self.parent, dtype=np.int64)[order]
        return Forest(
            label=Text.of(self.label).take(order),
            parent=np.where(parents >= 0, np.r_[index, -1][parents], -1).astype(np.int32),
            end=(np.arange(n) + np.array(size, dtype=np.int64)[order]).astype(np.int32),
            merged=np.array(merged if merged is not None else [1] * n, dtype=np.int32)[order],
            framework=np.array(self.framework, dtype=np.uint8)[order],
            leaf=np.where(leaf >= 0, np.r_[index, -1][leaf], -1).astype(np.int32),
        )


def weigh(forest: Forest, rows: I64, weights: Weights) -> Weights:
    """Return per node the sum of the weights of `rows` in its subtree, in the dtype of `weights`."""
    # bincount sums in float64, which is exact up to 2**53 bytes.
    leaf = forest.leaf[rows]
    own = np.bincount(leaf + 1, weights, len(forest.parent) + 1)[1:]
    total = np.r_[0, np.cumsum(own)]
    inclusive: Weights = (total[forest.end] - total[:-1]).astype(weights.dtype)
    return inclusive


POSITIONAL = "args"  # JAX's name for positional arguments, which are not repetitions of one another
INDEX = re.compile(r"\[\d+\]")
DIGITS = re.compile(r"(\d+)")
NUMBERED = re.compile(r"(?:^|[_.\-\[])\d+(?:$|[_.\-\]])")


def merge_layers(builder: ForestBuilder, leaf: I32) -> Forest:
    """Merge siblings that differ only in their numbers: layer_0 to layer_47 become `layer_*`.

    Indices merge only if their children agree, because a tuple may contain unrelated items. Names at the end of a path
    merge only if the number is separate: `w_1` and `w_2` merge, `w1` and `w2` do not.
    """
    label, labels = _coded(builder.label)
    key = _merge_keys(builder, label, labels)
    parent, depth = np.array(builder.parent, dtype=np.int64), np.array(builder.depth, dtype=np.int64)
    same = np.arange(len(parent))  # per node: the first of those that it is merged with
    for nodes in np.split(np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1]):
        place = same[parent[nodes]] * (key.max(initial=0) + 1) + key[nodes]
        _, first, which = np.unique(place, return_index=True, return_inverse=True)
        same[nodes] = nodes[first][which]
    kept = np.flatnonzero(same == np.arange(len(same)))
    target = np.searchsorted(kept, same)  # per node: its number in the merged forest
    result, members = ForestBuilder(), [list[str]() for _ in kept]
    for pair in np.unique(target * len(labels) + label).tolist():
        members[pair // len(labels)].append(labels[pair % len(labels)])
    result.label = [_common_label(each) for each in members]
    result.parent = np.where(parent[kept] >= 0, target[parent[kept]], -1).tolist()
    result.framework = [builder.framework[node] for node in kept.tolist()]
    return result.forest(np.r_[target, -1][leaf].astype(np.int32), np.bincount(target, minlength=len(kept)).tolist())


def _coded(texts: Sequence[str]) -> tuple[I64, list[str]]:
    """Return the number of each text among the distinct texts, and the distinct texts."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64), list(known)


def _merge_keys(builder: ForestBuilder, label: I64, labels: list[str]) -> I64:
    """Return per node a number that siblings must share to merge: of its name, or for an index, of its children."""
    names, _ = _coded([*labels, *(DIGITS.sub("*", label) for label in labels)])
    own, template = names[: len(labels)][label], names[len(labels) :][label]
    index, positional = (_of_labels(labels, test)[label] for test in (INDEX.fullmatch, POSITIONAL.__eq__))
    numbered = _of_labels(labels, NUMBERED.search)[label]
    parent = np.array(builder.parent, dtype=np.int64)
    has_parent, has_children = parent >= 0, np.zeros(len(parent), dtype=bool)
    has_children[parent[has_parent]] = True
    apart = np.where(index, has_parent & positional[parent], ~has_children & ~numbered)
    below = defaultdict[int, set[int]](set)
    of_index = np.flatnonzero(has_parent & index[parent])
    for node, child in zip(parent[of_index].tolist(), template[of_index].tolist(), strict=True):
        below[node].add(child)
    numbers: dict[frozenset[int], int] = {}
    children = np.zeros(len(parent), dtype=np.int64)
    children[list(below)] = [numbers.setdefault(frozenset(each), len(numbers) + 1) for each in below.values()]
    return np.unique(np.where(apart, own, template) * (len(numbers) + 1) + children, return_inverse=True)[1]


def _of_labels(labels: list[str], test: Callable[[str], object]) -> Mask:
    return np.array([bool(test(label)) for label in labels], dtype=bool)


def _common_label(labels: Sequence[str]) -> str:
    """Return the labels' common form, with * for each number in which they differ."""
    if len(distinct := set(labels)) == 1:
        return labels[0]
    pieces = [DIGITS.split(label) for label in distinct]
    if len({*map(len, pieces)}) > 1:  # one of them contains a * itself
        return DIGITS.sub("*", labels[0])
    return "".join(column[0] if len(set(column)) == 1 else "*" for column in zip(*pieces, strict=True))
