"""What changed from one recording, or one moment of it, to another, matched by what things are and not by their ids."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.call_graph.samples import concatenate_text
from tb_memplugin.analysis.compare.line_matching import LineMatching, match_lines
from tb_memplugin.analysis.ownership import classification
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak, usage
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

Codes = npt.NDArray[np.integer]

DIGITS = re.compile(r"\d+")
NAMED_LINE = re.compile(r".+\.\w+:\d+")
UNEXPLAINED = "explained by no allocation"
NO_LINE = "no Python line"


class CompareBy(StrEnum):
    """What the steps from one total to the other are."""

    ROLE = "role"
    MODEL = "model"  # arguments, passes and layers
    SOURCE = "source"  # the innermost line of the user's


class Entries(NamedTuple):
    """One thing in either or both: the same model path, source, operation and shape. The largest change first.

    Where a place has only other shapes than before, it is one thing that changed its shape: `reshaped`.
    """

    row_a: I64  # its largest allocation in the first, -1 where it has none
    row_b: I64
    bytes_a: I64
    bytes_b: I64
    allocations_a: I64
    allocations_b: I64
    reshaped: Mask


class Step(NamedTuple):
    label: str
    bytes_a: int
    bytes_b: int


class Comparison(NamedTuple):
    """`total_b - total_a` is the sum of the steps' changes."""

    position_a: int
    position_b: int
    total_a: int  # bytes live at the position
    total_b: int
    entries: Entries
    steps: list[Step]  # the largest growth first
    step_of: I64  # per entry the step that its largest allocation is counted in


class _Side(NamedTuple):
    recording: Recording
    position: int
    rows: I64  # live and charged, largest first
    allocations: I64
    total: int
    unexplained: int


class _Labels(NamedTuple):
    """What each of a side's rows is counted as."""

    code: Codes  # number of its name
    names: list[str]


def compare(
    a: Recording, b: Recording, at_a: int | None = None, at_b: int | None = None, by: CompareBy = CompareBy.ROLE
) -> Comparison:
    """At these positions, or at their peaks. InputError where the two are not of a kind."""
    if a.kind != b.kind:
        remedy = f"compare a {a.kind} with a {a.kind}: their figures mean the same"
        raise InputError("Recordings of two kinds", f"{a.kind} and {b.kind}", remedy)
    one, other = _side(a, at_a), _side(b, at_b)
    placed = match_lines(a, one.rows, b, other.rows)
    entries = _entries(one, other, placed)
    labels = [_labels(side, placed, number, by) for number, side in enumerate((one, other))]
    steps = _steps((one, other), labels)
    step_of = _step_of(entries, (one, other), labels, steps)
    return Comparison(one.position, other.position, one.total, other.total, entries, steps, step_of)


def _side(recording: Recording, at: int | None) -> _Side:
    position = peak(recording).position if at is None else at
    rows = live_rows(recording, position)
    inside = 0 <= position < recording.length
    charged = int(recording.allocations.charge[rows].sum())
    rest = int(usage(recording).live[position] - explained_bytes(recording)[position]) if inside else 0
    counts = np.ones(len(rows), np.int64) if recording.counts is None else recording.counts[rows]
    return _Side(recording, position, rows, counts, charged + rest, rest)


def _entries(a: _Side, b: _Side, placed: LineMatching) -> Entries:
    n = len(a.rows)
    site, placeless = _sites(a, b, placed)
    thing = _number_rows([site, *(_column_of_both(a, b, name).codes for name in ("shape", "dtype"))])
    in_a, in_b = (np.bincount(rows, minlength=int(thing.max(initial=-1)) + 1) for rows in (thing[:n], thing[n:]))
    # Places with shapes in the one that the other has not, and the other way round, changed their shape there.
    alone_a, alone_b = in_b[thing[:n]] == 0, in_a[thing[n:]] == 0
    both = np.intersect1d(site[:n][alone_a], site[n:][alone_b])
    changed = np.r_[alone_a, alone_b] & np.isin(site, both) & ~placeless
    entry = _number_rows([np.where(changed, site, -1), np.where(changed, -1, thing)])
    count = int(entry.max(initial=-1)) + 1

    def largest(side: _Side, which: I64) -> I64:
        found = np.full(count, -1, dtype=np.int64)
        found[which[::-1]] = side.rows[::-1]  # rows come largest first, and the last one written stays
        return found

    def sums(which: I64, amount: I64) -> I64:
        return np.bincount(which, amount, count).astype(np.int64)

    sides = ((a, entry[:n]), (b, entry[n:]))
    size_a, size_b = (sums(which, side.recording.allocations.charge[side.rows]) for side, which in sides)
    number_a, number_b = (sums(which, side.allocations) for side, which in sides)
    rows_a, rows_b = (largest(side, which) for side, which in sides)
    reshaped = np.zeros(count, dtype=bool)
    reshaped[entry[changed]] = True
    order = np.lexsort((np.arange(count), -np.maximum(size_a, size_b), -np.abs(size_b - size_a)))
    found = Entries(rows_a, rows_b, size_a, size_b, number_a, number_b, reshaped)
    return Entries._make(column[order] for column in found)


def _sites(a: _Side, b: _Side, placed: LineMatching) -> tuple[I64, Mask]:
    """Where each row of both is made: by model path, source and operation; by its name where it has no path and source.

    And which rows have neither: what a compiler calls `copy.92` is one of many copies, and not a place.
    """
    scope, op = (_column_of_both(a, b, column) for column in ("scope", "op"))
    chain = np.r_[placed.chain[0], placed.chain[1]]
    # Executables and arrays of one line are two things; what such a name is, is all that a device profile says of it.
    nameless = (scope.codes < 0) & ((chain < 0) | (op.codes < 0))
    renamed = np.full(len(chain), -1, dtype=np.int64)
    renamed[nameless] = _number_names(_column_of_both(a, b, "name").take(np.flatnonzero(nameless)))
    role = np.r_[a.recording.allocations.role[a.rows], b.recording.allocations.role[b.rows]]
    site = _number_rows([chain, scope.codes, op.codes, renamed, role])
    return site, (scope.codes < 0) & (chain < 0)


def _number_names(names: Text) -> I64:
    """A compiler numbers its names anew each time: those that differ in their numbers alone are one."""
    used, which = np.unique(names.codes, return_inverse=True)
    known: dict[str, int] = {}
    texts = (DIGITS.sub("*", names.strings[code]) if code >= 0 else "" for code in used.tolist())
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)[which]


def _column_of_both(a: _Side, b: _Side, column: str) -> Text:
    return concatenate_text([getattr(side.recording.allocations, column).take(side.rows) for side in (a, b)])


def _number_rows(columns: list[Codes]) -> I64:
    """Rows that agree in all columns get one number, from 0 on."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        part = column.astype(np.int64) - int(column.min(initial=0))
        # Numbered anew each time, so that rows x 32 bits never overflows.
        _, key = np.unique(key * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    return key


def _steps(sides: tuple[_Side, _Side], labels: list[_Labels]) -> list[Step]:
    before, after = (_sums(side, of_side) for side, of_side in zip(sides, labels, strict=True))
    for side, found in zip(sides, (before, after), strict=True):
        if side.unexplained:
            found[UNEXPLAINED] = side.unexplained
    steps = [Step(label, before.get(label, 0), after.get(label, 0)) for label in {**before, **after}]
    return sorted(steps, key=lambda step: (step.bytes_a - step.bytes_b, -step.bytes_b, step.label))


def _sums(side: _Side, labels: _Labels) -> dict[str, int]:
    """Bytes by label; those of one label together."""
    charge = side.recording.allocations.charge[side.rows]
    of_each = np.bincount(labels.code, charge, len(labels.names)).astype(np.int64).tolist()
    sums: dict[str, int] = {}
    for name, size in zip(labels.names, of_each, strict=True):
        if size:
            sums[name] = sums.get(name, 0) + size
    return sums


def _step_of(entries: Entries, sides: tuple[_Side, _Side], labels: list[_Labels], steps: list[Step]) -> I64:
    """Per entry the step of its largest allocation in the second recording, or else in the first."""
    number = {step.label: i for i, step in enumerate(steps)}
    found = np.full(len(entries.row_a), -1, dtype=np.int64)
    for side, of_side, row in zip(sides, labels, (entries.row_a, entries.row_b), strict=True):
        of_row = np.full(len(side.recording.allocations), -1, dtype=np.int64)
        of_row[side.rows] = np.array([number.get(name, -1) for name in of_side.names])[of_side.code]
        found[row >= 0] = of_row[row[row >= 0]]
    return found


def _labels(side: _Side, placed: LineMatching, number: int, by: CompareBy) -> _Labels:
    code: Codes
    if by is CompareBy.ROLE:
        code, names = roles(side.recording)[side.rows], [_role_name(side.recording, role) for role in Role]
    elif by is CompareBy.SOURCE:
        code, names = _lines(side, placed, number)
    else:
        forest = classification.forest(side.recording, classification.Classification.MODEL)
        code, names = forest.leaf[side.rows], _layers(forest)
    # What no classification knows has the last name.
    return _Labels(np.where(code >= 0, code, len(names) - 1), names)


def _lines(side: _Side, placed: LineMatching, number: int) -> tuple[Codes, list[str]]:
    """Per row its line, and what each is called. Live arrays without a stack go by the name of their line, `f.py:9`."""
    line, name = placed.line[number], side.recording.allocations.name.take(side.rows)
    used, which = np.unique(name.codes, return_inverse=True)
    texts = [name.strings[code] if code >= 0 else "" for code in used.tolist()]
    named = [text if NAMED_LINE.fullmatch(text) else NO_LINE for text in texts]
    return np.where(line >= 0, line, len(placed.names) + which), [*placed.names, *named, NO_LINE]


def _role_name(recording: Recording, role: Role) -> str:
    # In a device profile, everything but executables is an array's buffer.
    known = not recording.kind.has_call_graph or role is not Role.UNKNOWN
    return role.name.lower().replace("_", " ") if known else "live arrays"


def _layers(forest: classification.Forest) -> list[str]:
    """Per node the layer that it belongs to: its path as far as the first name with a number, or two names."""
    names: list[str] = []
    whole: list[bool] = []
    for node, parent in enumerate(forest.parent.tolist()):
        label = forest.label[node]
        if parent < 0:
            names.append(label)
            whole.append(False)
        elif whole[parent]:
            names.append(names[parent])
            whole.append(True)
        else:
            names.append(f"{names[parent]} / {label}")
            whole.append(bool(DIGITS.search(label)) or names[parent].count(" / ") >= 1)
    return [*names, "no model path"]
