"""Matching of source lines between two recordings, since edits shift lines and files move between folders."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.compare.stable_paths import NAMED_LINE
from tb_memplugin.analysis.ownership.source_lines import base_name, callers_first
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.numbering import number_values
from tb_memplugin.native.row_groups import group_rows

# A function's name and file. The name is None for a row without frames whose own name is a line: `train.py:61`.
Function = tuple[str | None, str]
Activities = dict[int, frozenset[str]]  # per line: functions called, operations done, and shapes of named rows


class LineMatching(NamedTuple):
    """User frames of two recordings, numbered together. Rows without a Python frame or a line's name have number -1.

    `chain` and `line` have one column per recording.
    """

    chain: tuple[I32, I32]  # per row: number of all its user frames
    line: tuple[I32, I32]  # per row: number of its innermost user frame
    names: list[str]  # per line: `layer (model.py:20, was 18)`, or `train.py:61`


class _UserFrame(NamedTuple):
    """A frame of the user's code on the stacks of rows, or a line that is the name of rows."""

    caller: int  # the nearest user's frame above it, -1 for none
    function: Function
    line: int
    activities: set[str]  # they distinguish the lines of a function


_UserFrames = dict[int, _UserFrame]  # by number, callers first


def match_lines(a: Recording, rows_a: I64, b: Recording, rows_b: I64) -> LineMatching:
    """Match the user frames of two recordings by function, file and line; differing lines of a function are aligned."""
    files_a, files_b = ({*of.stacks.file.strings.texts(of.stacks.file.used)} for of in (a, b))
    used = [_user_frames(recording, rows, files_a & files_b) for recording, rows in ((a, rows_a), (b, rows_b))]
    number = [_activities_by_line(frames) for frames, _ in used]
    known: dict[tuple[Function, int, int], int] = {}
    paired: tuple[dict[tuple[Function, int], int], ...] = ({}, {})
    for function in dict.fromkeys([*number[0], *number[1]]):
        for pair in pair_lines(*(of.get(function, {}) for of in number), same=a.stacks is b.stacks):
            place = known.setdefault((function, *pair), len(known))
            for side, line in zip(paired, pair, strict=True):
                if line >= 0:
                    side[function, line] = place
    # Named lines have no caller. Their chains are numbered first, so that sites of equal size are in order of lines.
    named = [place for (function, *_), place in known.items() if function[0] is None]
    chains = {(-1, place): number for number, place in enumerate(named)}
    found = [_per_row(*of_side, lines, chains) for of_side, lines in zip(used, paired, strict=True)]
    names = [_line_text(function, line_a, line_b) for function, line_a, line_b in known]
    return LineMatching((found[0][0], found[1][0]), (found[0][1], found[1][1]), names)


def _line_text(function: Function, line_a: int, line_b: int) -> str:
    name, file = function
    shifted = f", was {line_a}" if 0 <= line_a != line_b >= 0 else ""
    line = f"{file}:{line_b if line_b >= 0 else line_a}{shifted}"
    return line if name is None else f"{name or 'unnamed'} ({line})"


def _user_frames(recording: Recording, rows: I64, in_both: set[str]) -> tuple[_UserFrames, I64]:
    """Return the user's frames, and the number of each row's innermost one: above the stacks' for a line's name."""
    stacks, table, used = recording.stacks, recording.allocations, _UserFrames()
    innermost = {-1: -1}  # per frame of any kind: itself or the nearest user's frame above it, -1 none
    for at in callers_first(stacks, np.unique(table.stack[rows]).tolist()):
        caller = innermost[at.caller]
        innermost[at.frame] = caller if at.framework else at.frame
        if at.framework:
            continue
        file = stacks.file[at.frame]
        # Folders differ between machines; file names do not.
        known = file if file in in_both else base_name(file)
        line = max(int(stacks.line[at.frame]), 0)  # -1 stands for no line; damaged files have lower ones
        used[at.frame] = _UserFrame(caller, (stacks.function[at.frame], known), line, set())
        if caller >= 0:
            used[caller].activities.add(stacks.function[at.frame])
    leaves, which = number_values(table.stack[rows].astype(np.int64))
    of_row = np.array([innermost.get(leaf, -1) for leaf in leaves.tolist()], dtype=np.int64)[which]
    _add_named_lines(recording, rows, of_row, used)
    content = np.where(of_row < len(stacks.parent), table.op.codes[rows], table.shape.codes[rows])
    for row in group_rows([of_row, content]).first.tolist():
        frame = int(of_row[row])
        column = table.op if frame < len(stacks.parent) else table.shape
        if frame >= 0 and content[row] >= 0:
            used[frame].activities.add(column.strings[content[row]])
    return used, of_row


def _add_named_lines(recording: Recording, rows: I64, of_row: I64, used: _UserFrames) -> None:
    """Add a frame for each line that is the name of a row without a user frame, numbered after the stacks' frames."""
    names, first = recording.allocations.name.take(rows), len(recording.stacks.parent)
    alone = np.flatnonzero(of_row < 0)
    found = {code: NAMED_LINE.fullmatch(names.strings[code]) for code in names.take(alone).used.tolist()}
    lines = {first + code: line for code, line in found.items() if line is not None}
    used.update((frame, _UserFrame(-1, (None, line[1]), int(line[2]), set())) for frame, line in lines.items())
    named = first + names.codes[alone].astype(np.int64)
    of_row[alone] = np.where(np.isin(named, [*lines]), named, -1)


def _activities_by_line(used: _UserFrames) -> dict[Function, dict[int, frozenset[str]]]:
    """Return for each function the activities of each of its lines."""
    found: dict[Function, dict[int, set[str]]] = {}
    for frame in used.values():
        found.setdefault(frame.function, {}).setdefault(frame.line, set()).update(frame.activities)
    return {
        f: {line: frozenset(activities) for line, activities in sorted(lines.items())} for f, lines in found.items()
    }


def pair_lines(a: Activities, b: Activities, *, same: bool = False) -> list[tuple[int, int]]:
    """Return pairs of lines of one function, -1 for a line without a match. Swapping a and b swaps the pairs.

    `same`: both are positions of one program, whose lines did not shift.
    """
    if same:
        return [(line if line in a else -1, line if line in b else -1) for line in sorted({*a, *b})]
    if list(a) > list(b):
        return [(one, other) for other, one in pair_lines(b, a)]
    if len(a) == len(b):
        return _pair_equal([*a], [*b]) if _unmoved(a, b) else list(zip(a, b, strict=True))
    before, after = list(a), list(b)
    matcher = SequenceMatcher(None, [a[line] for line in before], [b[line] for line in after], autojunk=False)
    pairs = list[tuple[int, int]]()
    for _, start_a, end_a, start_b, end_b in matcher.get_opcodes():
        block = before[start_a:end_a], after[start_b:end_b]
        pairs += zip(*block, strict=True) if len(block[0]) == len(block[1]) else _pair_equal(*block)
    return pairs


def _unmoved(a: Activities, b: Activities) -> bool:
    """Return whether pairing lines by their numbers gives more pairs of equal activities than pairing them in order."""
    in_place = sum(a[line] == b[line] for line in a.keys() & b.keys())
    return in_place > sum(one == other for one, other in zip(a.values(), b.values(), strict=True))


def _pair_equal(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    same = {*a} & {*b}
    return [
        *((n, n) for n in a if n in same),
        *((n, -1) for n in a if n not in same),
        *((-1, n) for n in b if n not in same),
    ]


def _per_row(
    used: _UserFrames, of_row: I64, paired: dict[tuple[Function, int], int], chains: dict[tuple[int, int], int]
) -> tuple[I32, I32]:
    """Return the number of each row's chain of user frames, and that of its innermost line."""
    chain: dict[int, int] = {-1: -1}
    line: dict[int, int] = {-1: -1}
    for number, frame in used.items():
        line[number] = paired[frame.function, frame.line]
        chain[number] = chains.setdefault((chain[frame.caller], line[number]), len(chains))
    frames, which = number_values(of_row)
    chain_of, line_of = (np.array([of[frame] for frame in frames.tolist()], dtype=np.int32) for of in (chain, line))
    return chain_of[which], line_of[which]
