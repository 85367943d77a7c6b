"""Classification of a recording's rows into forests, by model, source, function, role, shape or dtype.

A forest classifies all rows once. The bytes of the rows that are live at a position are then summed per node, here or
in the page. The largest layer at the peak is found by such sums.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.by_model import BEFORE, CONSTANTS, NO_PATH, by_model, special_groups
from tb_memplugin.analysis.ownership.forest import DIGITS, Forest, ForestBuilder, merge_layers, weigh
from tb_memplugin.analysis.ownership.model_paths import jitted_function
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import Frame, callers_first, frame_text, named_for_line, of_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

NO_LINE, NO_STACK, NO_FUNCTION = "no Python line", "no stack", "no jitted function"
NOT_MARKED = "not marked"  # PyTorch tensors outside of the user's record_function ranges and of compiled functions


def by_stack(recording: Recording, builder: ForestBuilder) -> I32:
    """Return the node of each row, by all frames, outermost first."""
    node: dict[int, int] = {-1: -1}
    for at in _iter_frames(recording):
        label = frame_text(recording.stacks, at.frame)
        node[at.frame] = builder.child(node[at.caller], label, framework=at.framework)
    return _add_rows_without_frame(recording, builder, _per_row(recording, node), NO_STACK)


def by_source(recording: Recording, builder: ForestBuilder) -> I32:
    """Return the node of each row, by the user's frames, outermost first."""
    node: dict[int, int] = {-1: -1}
    for at in _iter_frames(recording):
        caller = node[at.caller]
        node[at.frame] = caller if at.framework else builder.child(caller, frame_text(recording.stacks, at.frame))
    leaf = _per_row(recording, node)
    lines = np.flatnonzero((leaf < 0) & named_for_line(recording))
    names = recording.allocations.name.take(lines)
    leaf[lines] = builder.rows([names.codes], lambda i: (names[i],))
    return _add_rows_without_frame(recording, builder, leaf, NO_LINE)


def by_function(recording: Recording, builder: ForestBuilder) -> I32:
    """Return the node of each row, by its jitted function, then the user's innermost line.

    If no line is known, the runtime's innermost call is used.
    """
    rows = recording.allocations
    innermost: dict[int, int] = {-1: -1}
    for at in _iter_frames(recording):
        innermost[at.frame] = innermost[at.caller] if at.framework else at.frame
    line, named = _per_row(recording, innermost), named_for_line(recording)
    known = (rows.stack >= 0) & (rows.stack < len(recording.stacks.parent))
    frame = np.where((line < 0) & ~named & known, rows.stack, line)
    name = np.where(named & (line < 0), rows.name.codes, -1)
    function, group = _jitted_functions(recording), special_groups(recording)
    without = NOT_MARKED if recording.kind.is_torch else NO_FUNCTION

    def path(row: int) -> tuple[str, ...]:
        if group[row]:
            return (group[row],)
        fallback = rows.name[row] if name[row] >= 0 else NO_LINE
        line_text = frame_text(recording.stacks, int(frame[row])) if frame[row] >= 0 else fallback
        return (function[row] or without, line_text)

    return builder.rows([group.codes, function.codes, frame, name], path)


def _jitted_functions(recording: Recording) -> Text:
    """Return the innermost jitted function of each row."""
    scope = recording.allocations.op_name
    if recording.axis is Axis.TIME:
        return scope  # a runtime's scope is the function itself; a program's is an op_name that contains it
    names = Text.of([*map(jitted_function, scope.strings), ""])
    return names.take(scope.codes)  # a code of -1 finds the last, which is empty


def _iter_frames(recording: Recording) -> Iterator[Frame]:
    return callers_first(recording.stacks, np.unique(recording.allocations.stack).tolist())


def _per_row(recording: Recording, of_frame: dict[int, int]) -> I32:
    """Return the value of each row's innermost frame, -1 if it has none."""
    table = np.full(len(recording.stacks.parent) + 1, -1, dtype=np.int32)
    table[list(of_frame)] = list(of_frame.values())
    return of_rows(table[:-1], recording.allocations.stack)


def _add_rows_without_frame(recording: Recording, builder: ForestBuilder, leaf: I32, otherwise: str) -> I32:
    """Add rows without a frame under their special group, or under `otherwise`."""
    rest = np.flatnonzero(leaf < 0)
    group = special_groups(recording).take(rest)
    leaf[rest] = builder.rows([group.codes], lambda i: (group[i] or otherwise,))
    return leaf


__all__ = ["Classification", "Forest", "forest", "weigh"]


class Classification(StrEnum):
    """The levels of a forest, from root to leaf."""

    MODEL = "model"  # pytree paths of arguments; pass, scopes and operation of everything else
    SOURCE = "source"  # Python frames, outermost first, without those of frameworks
    STACK = "stack"  # every frame
    FUNCTION = "function"  # jitted function, then its innermost Python line
    ROLE = "role"  # then shape
    SHAPE = "shape"
    DTYPE = "dtype"  # then shape


def forest(recording: Recording, by: Classification, merge: bool = False) -> Forest:
    """Return the forest of all rows, cached per recording. `merge` joins repeated layers; it only affects MODEL."""
    cached = _forests(recording)
    key = (by, merge and by is Classification.MODEL)
    if key not in cached:
        builder = ForestBuilder()
        leaf = BUILDERS[by](recording, builder)
        cached[key] = merge_layers(builder, leaf) if key[1] else builder.forest(leaf)
    return cached[key]


@memoize
def _forests(recording: Recording) -> dict[tuple[Classification, bool], Forest]:
    return {}


def _by_role(recording: Recording, builder: ForestBuilder) -> I32:
    rows, role = recording.allocations, roles(recording)
    names = [role.label for role in Role]
    return builder.rows([role, rows.shape.codes], lambda row: (names[role[row]], _shape(recording, row)))


def _by_shape(recording: Recording, builder: ForestBuilder) -> I32:
    return builder.rows([recording.allocations.shape.codes], lambda row: (_shape(recording, row),))


def _by_dtype(recording: Recording, builder: ForestBuilder) -> I32:
    rows = recording.allocations
    return builder.rows(
        [rows.dtype.codes, rows.shape.codes], lambda row: (rows.dtype[row] or "unknown dtype", _shape(recording, row))
    )


def _shape(recording: Recording, row: int) -> str:
    return recording.allocations.shape[row] or "unknown shape"


BUILDERS: dict[Classification, Callable[[Recording, ForestBuilder], I32]] = {
    Classification.MODEL: by_model,
    Classification.SOURCE: by_source,
    Classification.STACK: by_stack,
    Classification.FUNCTION: by_function,
    Classification.ROLE: _by_role,
    Classification.SHAPE: _by_shape,
    Classification.DTYPE: _by_dtype,
}


MIN_SHARE = 0.01  # a choice: parts below this share of the peak are not named
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
