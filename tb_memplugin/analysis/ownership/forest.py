"""Forests in columns: what rows are classified into, and what each node weighs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import F64, I32, I64, U8
from tb_memplugin.model.text import Text

Weights = TypeVar("Weights", I64, F64)

MAX_DEPTH = 256  # what lies deeper belongs to the node there: real stacks are up to 221 frames deep
POSITIONAL = "args"  # JAX's name for arguments without one: different things, not one thing repeated
INDEX = re.compile(r"\[\d+\]")
DIGITS = re.compile(r"(\d+)")
NUMBERED = re.compile(r"(?:^|[_.\-\[])\d+(?:$|[_.\-\]])")


class Forest(NamedTuple):
    """Trees over all rows of a recording, whatever is live: a static classification.

    Nodes are in preorder: those below i, itself included, are i to end[i], that one excluded.
    """

    label: Text
    parent: I32  # -1 of a root
    end: I32
    merged: I32  # how many nodes became this one; 1 where none were merged
    framework: U8  # 1: a frame of a framework or of the runtime
    leaf: I32  # per row of the recording, the node it belongs to; -1 none


class ForestBuilder:
    """A forest while it grows. Nodes are numbered as they come, each after the one it is below."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.label: list[str] = []
        self.framework: list[bool] = []
        self._depth: list[int] = []
        self._known: dict[tuple[int, str], int] = {}

    def child(self, parent: int, label: str, *, framework: bool = False) -> int:
        """The node of that name below `parent` (-1: a root)."""
        if parent >= 0 and self._depth[parent] >= MAX_DEPTH:
            return parent
        node = self._known.setdefault((parent, label), len(self.parent))
        if node == len(self.parent):
            self.parent.append(parent)
            self.label.append(label)
            self.framework.append(framework)
            self._depth.append(self._depth[parent] + 1 if parent >= 0 else 0)
        return node

    def path(self, labels: Iterable[str]) -> int:
        """The node at the end of a path from a root."""
        node = -1
        for label in labels:
            node = self.child(node, label)
        return node

    def rows(self, columns: Sequence[npt.NDArray[Any]], path: Callable[[int], Iterable[str]]) -> I32:
        """The node of each row. Rows that agree in all columns have one path: that of the first of them.

        Columns are of integers or booleans.
        """
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column in columns:
            part = column.astype(np.int64) - column.min(initial=0)
            # Numbered anew each time, so that rows x 32 bits never overflows.
            _, first, key = np.unique(key * (part.max(initial=0) + 1) + part, return_index=True, return_inverse=True)
        nodes = np.empty(len(first), dtype=np.int32)
        for code in np.argsort(first).tolist():
            nodes[code] = self.path(path(int(first[code])))
        return nodes[key]

    def forest(self, leaf: I32, merged: Sequence[int] | None = None) -> Forest:
        """`leaf`: per row, a number of this grower. Children keep the order in which they came."""
        n = len(self.parent)
        size = [1] * n
        for node in range(n - 1, -1, -1):
            if self.parent[node] >= 0:
                size[self.parent[node]] += size[node]
        place, free = [0] * n, [0] * (n + 1)  # free[parent]: where its next child goes; the last is for roots
        for node, parent in enumerate(self.parent):
            place[node] = free[parent]
            free[parent] += size[node]
            free[node] = place[node] + 1
        at = np.array(place, dtype=np.int64)
        order = np.argsort(at)
        above = np.array(self.parent, dtype=np.int64)[order]
        return Forest(
            label=Text.of(self.label).take(order),
            parent=np.where(above >= 0, np.r_[at, -1][above], -1).astype(np.int32),
            end=(np.arange(n) + np.array(size, dtype=np.int64)[order]).astype(np.int32),
            merged=np.array(merged if merged is not None else [1] * n, dtype=np.int32)[order],
            framework=np.array(self.framework, dtype=np.uint8)[order],
            leaf=np.where(leaf >= 0, np.r_[at, -1][leaf], -1).astype(np.int32),
        )


def weigh(forest: Forest, rows: I64, weights: Weights) -> Weights:
    """Per node the sum over `rows` at it and below; integers come back as integers."""
    # Sums of bytes are exact in float64 up to 2**53; bincount knows no int64.
    leaf = forest.leaf[rows]
    own = np.bincount(leaf + 1, weights, len(forest.parent) + 1)[1:]
    total = np.r_[0, np.cumsum(own)]
    inclusive: Weights = (total[forest.end] - total[:-1]).astype(weights.dtype)
    return inclusive


def merge_layers(grower: ForestBuilder, leaf: I32) -> Forest:
    """Siblings that differ in their numbers alone become one: `layer_*` for layer_0 to layer_47.

    An index merges only with one that has the same below it, since the items of a tuple may be different things; a
    name at the end of a path only where its number stands apart, since `w1` and `w2` are.
    """
    alike = _merge_keys(grower)
    known, members = dict[tuple[int, str, frozenset[str]], int](), list[list[str]]()
    result, target = ForestBuilder(), list[int]()
    for node, parent in enumerate(grower.parent):
        above = target[parent] if parent >= 0 else -1
        merged = known.setdefault((above, *alike[node]), len(members))
        if merged == len(members):
            members.append([])
            result.parent.append(above)
            result.framework.append(grower.framework[node])
        members[merged].append(grower.label[node])
        target.append(merged)
    result.label = [_common_label(labels) for labels in members]
    return result.forest(np.r_[np.array(target, dtype=np.int32), -1][leaf], [len(labels) for labels in members])


def _merge_keys(grower: ForestBuilder) -> list[tuple[str, frozenset[str]]]:
    """Per node, what siblings must share to be one: a name, and for an index what is below."""
    templates = {label: DIGITS.sub("*", label) for label in set(grower.label)}
    below: list[set[str]] = [set() for _ in grower.parent]
    for label, parent in zip(grower.label, grower.parent, strict=True):
        if parent >= 0:
            below[parent].add(templates[label])
    found = []
    for label, parent, children in zip(grower.label, grower.parent, below, strict=True):
        index = INDEX.fullmatch(label) is not None
        apart = (
            parent >= 0 and grower.label[parent] == POSITIONAL if index else not (children or NUMBERED.search(label))
        )
        found.append((label if apart else templates[label], frozenset(children) if index else frozenset()))
    return found


def _common_label(labels: Sequence[str]) -> str:
    """The one name, with * for each number in which the names differ."""
    if len(distinct := set(labels)) == 1:
        return labels[0]
    pieces = [DIGITS.split(label) for label in distinct]
    return "".join(column[0] if len(set(column)) == 1 else "*" for column in zip(*pieces, strict=True))
