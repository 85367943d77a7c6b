"""Rows by the source that allocated them: Python lines, whole stacks, jitted functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.ownership.by_model import special_groups
from tb_memplugin.analysis.ownership.forest import ForestBuilder
from tb_memplugin.analysis.ownership.frames import Frame, callers_first, frame_text
from tb_memplugin.analysis.ownership.model_paths import jitted_function
from tb_memplugin.analysis.ownership.source_lines import named_for_line
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Axis
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
    scope = recording.allocations.scope
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
    stack = recording.allocations.stack
    return table[np.where((stack >= 0) & (stack < len(table) - 1), stack, -1)]


def _add_rows_without_frame(recording: Recording, builder: ForestBuilder, leaf: I32, otherwise: str) -> I32:
    """Add rows without a frame under their special group, or under `otherwise`."""
    rest = np.flatnonzero(leaf < 0)
    group = special_groups(recording).take(rest)
    leaf[rest] = builder.rows([group.codes], lambda i: (group[i] or otherwise,))
    return leaf
