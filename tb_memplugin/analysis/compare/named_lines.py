"""Matching of rows that are named after their source line, `train.py:61`, as live arrays without a stack are."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.compare.line_matching import LineMatching, pair_lines
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.recording import Recording

NAMED_LINE = re.compile(r"(.+\.\w+):(\d{1,9})")


class _NamedLines(NamedTuple):
    """The lines that a recording's rows are named after."""

    at: dict[int, tuple[str, int]]  # per code of a name: file and line
    activities: dict[str, dict[int, frozenset[str]]]  # per file and line: the shapes of its arrays


def match_named_lines(a: Recording, rows_a: I64, b: Recording, rows_b: I64, matching: LineMatching) -> LineMatching:
    """Return the matching with a number for each row without a Python frame whose name is a line."""
    sides = ((a, rows_a), (b, rows_b))
    without = [line < 0 for line in matching.line]
    found = [_named_lines(r, rows[alone]) for (r, rows), alone in zip(sides, without, strict=True)]
    if not (found[0].at or found[1].at):
        return matching
    names = list(matching.names)
    number: tuple[dict[tuple[str, int], int], ...] = ({}, {})
    for file in dict.fromkeys([*found[0].activities, *found[1].activities]):
        for pair in pair_lines(*(one.activities.get(file, {}) for one in found), same=a.allocations is b.allocations):
            for side, line in zip(number, pair, strict=True):
                if line >= 0:
                    side[file, line] = len(names)
            names.append(_line_text(file, *pair))
    numbers = [
        np.where(alone, _numbers(r, rows, f, n), -1)
        for (r, rows), alone, f, n in zip(sides, without, found, number, strict=True)
    ]
    # Chains are numbered apart from lines, so named lines come after every chain.
    first = 1 + max(int(chain.max(initial=-1)) for chain in matching.chain)
    chains = [np.where(n >= 0, first + n, c).astype(np.int32) for c, n in zip(matching.chain, numbers, strict=True)]
    lines = [np.where(n >= 0, n, x).astype(np.int32) for x, n in zip(matching.line, numbers, strict=True)]
    return LineMatching((chains[0], chains[1]), (lines[0], lines[1]), names)


def _named_lines(recording: Recording, rows: I64) -> _NamedLines:
    table = recording.allocations
    at: dict[int, tuple[str, int]] = {}
    for code in np.unique(table.name.codes[rows]).tolist():
        if code >= 0 and (match := NAMED_LINE.fullmatch(table.name.strings[code])):
            at[code] = (match[1], int(match[2]))
    shapes: dict[str, dict[int, set[str]]] = {}
    pairs = np.unique(np.stack([table.name.codes[rows], table.shape.codes[rows]], axis=1), axis=0) if at else ()
    for code, shape in pairs:
        if int(code) in at:
            file, line = at[int(code)]
            shapes.setdefault(file, {}).setdefault(line, set()).add(table.shape.strings[shape] if shape >= 0 else "")
    activities = {file: {n: frozenset(found) for n, found in sorted(of.items())} for file, of in shapes.items()}
    return _NamedLines(at, activities)


def _numbers(recording: Recording, rows: I64, found: _NamedLines, number: dict[tuple[str, int], int]) -> I32:
    """Return the number of each row's named line, -1 for none."""
    codes, which = np.unique(recording.allocations.name.codes[rows], return_inverse=True)
    known = [number[found.at[code]] if code in found.at else -1 for code in codes.tolist()]
    return np.array(known, dtype=np.int32)[which]


def _line_text(file: str, line_a: int, line_b: int) -> str:
    shifted = f", was {line_a}" if 0 <= line_a != line_b >= 0 else ""
    return f"{file}:{line_b if line_b >= 0 else line_a}{shifted}"
