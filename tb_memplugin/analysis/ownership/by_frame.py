"""Rows by the source that asked for them: Python lines, whole stacks, jitted functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.ownership.by_model import special_groups
from tb_memplugin.analysis.ownership.forest import ForestBuilder
from tb_memplugin.analysis.ownership.frames import Frame, callers_first, frame_text
from tb_memplugin.analysis.ownership.model_paths import jitted_function
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

LINE = re.compile(r".+\.py:\d+", re.DOTALL)
NO_LINE, NO_STACK, NO_FUNCTION = "no Python line", "no stack", "no jitted function"
NOT_MARKED = "not marked"  # of PyTorch's tensors, which have what the user called them, and what was being compiled


def by_stack(recording: Recording, grower: ForestBuilder) -> I32:
    """The node of each row: every frame, outermost first."""
    node: dict[int, int] = {-1: -1}
    for at in _iter_frames(recording):
        label = frame_text(recording.stacks, at.frame)
        node[at.frame] = grower.child(node[at.caller], label, framework=at.framework)
    return _add_rows_without_frame(recording, grower, _per_row(recording, node), NO_STACK)


def by_source(recording: Recording, grower: ForestBuilder) -> I32:
    """The node of each row: the user's frames, outermost first."""
    node: dict[int, int] = {-1: -1}
    for at in _iter_frames(recording):
        above = node[at.caller]
        node[at.frame] = above if at.framework else grower.child(above, frame_text(recording.stacks, at.frame))
    leaf = _per_row(recording, node)
    lines = np.flatnonzero((leaf < 0) & _named_for_line(recording))
    names = recording.allocations.name.take(lines)
    leaf[lines] = grower.rows([names.codes], lambda i: (names[i],))
    return _add_rows_without_frame(recording, grower, leaf, NO_LINE)


def by_function(recording: Recording, grower: ForestBuilder) -> I32:
    """The node of each row: the jitted function that it is made in, then the user's innermost line.

    Where no line is known, the runtime's innermost call stands in for it.
    """
    rows = recording.allocations
    innermost: dict[int, int] = {-1: -1}
    for at in _iter_frames(recording):
        innermost[at.frame] = innermost[at.caller] if at.framework else at.frame
    line, named = _per_row(recording, innermost), _named_for_line(recording)
    known = (rows.stack >= 0) & (rows.stack < len(recording.stacks.parent))
    frame = np.where((line < 0) & ~named & known, rows.stack, line)
    name = np.where(named & (line < 0), rows.name.codes, -1)
    function, aside = _jitted_functions(recording), special_groups(recording)
    without = NOT_MARKED if recording.kind.is_torch else NO_FUNCTION

    def path(row: int) -> tuple[str, ...]:
        if what := aside[row]:
            return (what,)
        alone = rows.name[row] if name[row] >= 0 else NO_LINE
        place = frame_text(recording.stacks, int(frame[row])) if frame[row] >= 0 else alone
        return (function[row] or without, place)

    return grower.rows([aside.codes, function.codes, frame, name], path)


def _jitted_functions(recording: Recording) -> Text:
    """The innermost jitted function of each row."""
    scope = recording.allocations.scope
    if recording.axis is Axis.TIME:
        return scope  # a runtime's row is told its function; a program's has it in the name of its operation
    names = Text.of([*(jitted_function(scope.strings[code]) for code in range(len(scope.strings))), ""])
    return names.take(scope.codes)  # a code of -1 finds the last, which is empty


def _named_for_line(recording: Recording) -> npt.NDArray[np.bool_]:
    """Rows of a runtime that are named for a line of Python, as `track()` names arrays."""
    names = recording.allocations.name
    if recording.axis is not Axis.TIME:
        return np.zeros(len(names), dtype=bool)
    named = np.array([LINE.fullmatch(names.strings[code]) is not None for code in range(len(names.strings))] + [False])
    return named[names.codes]


def _iter_frames(recording: Recording) -> Iterator[Frame]:
    return callers_first(recording.stacks, np.unique(recording.allocations.stack).tolist())


def _per_row(recording: Recording, of_frame: dict[int, int]) -> I32:
    """What is known of each row's innermost frame; -1 where it has none."""
    table = np.full(len(recording.stacks.parent) + 1, -1, dtype=np.int32)
    table[list(of_frame)] = list(of_frame.values())
    stack = recording.allocations.stack
    return table[np.where((stack >= 0) & (stack < len(table) - 1), stack, -1)]


def _add_rows_without_frame(recording: Recording, grower: ForestBuilder, leaf: I32, otherwise: str) -> I32:
    """Rows without a frame under what they are, or `otherwise`."""
    rest = np.flatnonzero(leaf < 0)
    aside = special_groups(recording).take(rest)
    leaf[rest] = grower.rows([aside.codes], lambda i: (aside[i] or otherwise,))
    return leaf
