"""Layers that repeat in a forest, merged into one: layer_0 to layer_47 become `layer_*`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from tb_memplugin.analysis.ownership.forest import Forest, ForestBuilder
from tb_memplugin.model.arrays import I32, I64, Mask

POSITIONAL = "args"  # JAX's name for positional arguments: these are different things, not repetitions of one
INDEX = re.compile(r"\[\d+\]")
DIGITS = re.compile(r"(\d+)")
NUMBERED = re.compile(r"(?:^|[_.\-\[])\d+(?:$|[_.\-\]])")


def merge_layers(builder: ForestBuilder, leaf: I32) -> Forest:
    """Merge siblings that differ only in their numbers: layer_0 to layer_47 become `layer_*`.

    Indices merge only if their children agree, since the items of a tuple may be different things. Names at the end of
    a path merge only if the number is set apart: `w_1` and `w_2` do, `w1` and `w2` do not.
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
    """Return the number of each text among the distinct texts, and those."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64), list(known)


def _merge_keys(builder: ForestBuilder, label: I64, labels: list[str]) -> I64:
    """Return per node the number that siblings must share to merge: of a name, and for an index of its children."""
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
