"""Forests of labeled nodes in columns, into which rows are classified, and the weights of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import F64, I32, I64, U8
from tb_memplugin.model.text import Text
from tb_memplugin.native.numbering import number_values

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
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column in columns:
            part = column.astype(np.int64) - column.min(initial=0)
            # Renumbered each time, so that the key (rows x 32 bits) never overflows.
            known, key = number_values(key * (part.max(initial=0) + 1) + part)
        first = np.empty(len(known), dtype=np.int64)
        first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
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
