"""The layer, scope, function or line that takes the most memory at the peak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.by_frame import NO_FUNCTION, NO_LINE, NOT_MARKED
from tb_memplugin.analysis.ownership.by_model import BEFORE, CONSTANTS, NO_PATH
from tb_memplugin.analysis.ownership.classification import Classification, forest, weigh
from tb_memplugin.analysis.ownership.forest import Forest
from tb_memplugin.analysis.ownership.repeated_layers import DIGITS
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording

MIN_SHARE = 0.01  # of the peak; smaller parts are not worth naming
NOT_LAYERS = {BEFORE, CONSTANTS, NO_FUNCTION, NO_LINE, NOT_MARKED, NO_PATH}


class HeaviestLayer(NamedTuple):
    name: str
    repeats: int  # how many layers of that name there are
    bytes: int


@memoize
def heaviest_layer(recording: Recording) -> HeaviestLayer | None:
    """Return the largest family of repeated layers, else the largest scope, jitted function or Python line.

    The first of these that takes at least MIN_SHARE of the peak is returned; None if none does.
    """
    least = MIN_SHARE * peak(recording).bytes
    return next((part for part in _parts(recording) if part is not None and part.bytes >= least), None)


def _parts(recording: Recording) -> Iterator[HeaviestLayer | None]:
    """Yield the heaviest part of each kind, in order of preference. Each kind takes a forest of all rows."""
    rows = live_rows(recording, peak(recording).position)
    weights = recording.allocations.charge[rows]
    model = forest(recording, Classification.MODEL, merge=True)
    total = weigh(model, rows, weights)
    yield _repeated_layer(model, total)
    yield _top_scope(model, total)
    if recording.axis is Axis.TIME:  # a program is a single jitted function; a runtime has several
        function = forest(recording, Classification.FUNCTION)
        yield _heaviest_node(function, weigh(function, rows, weights), _root_nodes(function))
    source = forest(recording, Classification.SOURCE)
    own = np.bincount(source.leaf[rows], weights, len(source.parent)).astype(np.int64)
    yield _heaviest_node(
        source, own, [node for node in np.flatnonzero(own).tolist() if source.label[node] not in NOT_LAYERS]
    )


def _root_nodes(tree: Forest) -> list[int]:
    parents = tree.parent.tolist()
    return [node for node, parent in enumerate(parents) if parent < 0 and tree.label[node] not in NOT_LAYERS]


def _repeated_layer(model: Forest, total: I64) -> HeaviestLayer | None:
    """Return the heaviest repeated layer: the sum of its arguments, activations and gradients in their branches."""
    labels = [model.label[node] for node in range(len(model.parent))]
    templates = [DIGITS.sub("*", label) for label in labels]
    inner = (model.end > np.arange(len(model.parent)) + 1).tolist()
    repeating = {
        templates[node]: labels[node]
        for node in np.flatnonzero(model.merged > 1).tolist()
        if "*" in labels[node] and inner[node]
    }
    inside, outermost = [False] * len(templates), list[int]()
    for node, parent in enumerate(model.parent.tolist()):
        within = parent >= 0 and inside[parent]
        layer = templates[node] in repeating and inner[node]
        inside[node] = within or layer
        if layer and not within:
            outermost.append(node)
    return _heaviest_node(model, total, outermost, [repeating[templates[node]] for node in outermost])


def _top_scope(model: Forest, total: I64) -> HeaviestLayer | None:
    """Return the heaviest scope directly below a pass or below the arguments."""
    roots = set(_root_nodes(model))
    inner = [n for n, parent in enumerate(model.parent.tolist()) if parent in roots and model.end[n] > n + 1]
    return _heaviest_node(model, total, inner)


def _heaviest_node(tree: Forest, total: I64, nodes: list[int], names: list[str] | None = None) -> HeaviestLayer | None:
    """Return the name with the most bytes; nodes of one name count together. `names` default to the labels."""
    bytes_of, repeats = defaultdict[str, int](int), defaultdict[str, int](int)
    for node, name in zip(nodes, names or [tree.label[node] for node in nodes], strict=True):
        bytes_of[name] += int(total[node])
        repeats[name] = max(repeats[name], int(tree.merged[node]))
    name = max(bytes_of, key=bytes_of.__getitem__, default="")
    return HeaviestLayer(name, repeats[name], bytes_of[name]) if name and bytes_of[name] else None
