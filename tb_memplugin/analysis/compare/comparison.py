"""Changes between two recordings, or two moments of one, matched by content and not by ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.call_graph.samples import concatenate_text
from tb_memplugin.analysis.compare.line_matching import LineMatching, match_lines
from tb_memplugin.analysis.compare.named_lines import match_named_lines
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
UNEXPLAINED = "explained by no allocation"
NO_LINE = "no Python line"


class CompareBy(StrEnum):
    """The groups whose changes lead from one total to the other."""

    ROLE = "role"
    MODEL = "model"  # arguments, passes and layers
    SOURCE = "source"  # the innermost line of user code


class Entries(NamedTuple):
    """Groups of equal model path, source, operation, role and shape, largest change first.

    A site whose shapes all changed is one entry with `reshaped` set. All rows of an entry are in one step, so the
    entries of a step add up to it.
    """

    row_a: I64  # the largest allocation in the first recording, -1 for none
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
    step_of: I64  # per entry: the step that counts it


class _Side(NamedTuple):
    recording: Recording
    position: int
    rows: I64  # live and charged, largest first
    allocations: I64
    total: int
    unexplained: int


class _Labels(NamedTuple):
    """The group of each of a side's rows."""

    code: Codes  # per row: index into `names`
    names: list[str]


def compare(
    a: Recording, b: Recording, at_a: int | None = None, at_b: int | None = None, by: CompareBy = CompareBy.ROLE
) -> Comparison:
    """Compare two recordings at these positions, by default at their peaks. InputError if their kinds differ."""
    if a.kind != b.kind:
        remedy = f"compare a {a.kind} with a {a.kind}: their figures mean the same"
        raise InputError("Recordings of two kinds", f"{a.kind} and {b.kind}", remedy)
    one, other = _side(a, at_a), _side(b, at_b)
    matching = match_named_lines(a, one.rows, b, other.rows, match_lines(a, one.rows, b, other.rows))
    # Layers split entries only where they are asked for: they take longer than all else.
    groupings = dict.fromkeys((CompareBy.ROLE, CompareBy.SOURCE, by))
    labels = {each: [_labels(side, matching, n, each) for n, side in enumerate((one, other))] for each in groupings}
    entries = _entries(one, other, matching, labels.values())
    steps = _steps((one, other), labels[by])
    step_of = _step_of(entries, (one, other), labels[by], steps)
    return Comparison(one.position, other.position, one.total, other.total, entries, steps, step_of)


def _side(recording: Recording, at: int | None) -> _Side:
    position = peak(recording).position if at is None else at
    rows = live_rows(recording, position)
    inside = 0 <= position < recording.length
    charged = int(recording.allocations.charge[rows].sum())
    rest = int(usage(recording).live[position] - explained_bytes(recording)[position]) if inside else 0
    return _Side(recording, position, rows, recording.allocation_counts(rows), charged + rest, rest)


def _entries(a: _Side, b: _Side, matching: LineMatching, labels: Iterable[Sequence[_Labels]]) -> Entries:
    n = len(a.rows)
    site, unlocated = _sites(a, b, matching, labels)
    thing = _number_rows([site, *(_column_of_both(a, b, name).codes for name in ("shape", "dtype"))])
    in_a, in_b = (np.bincount(rows, minlength=int(thing.max(initial=-1)) + 1) for rows in (thing[:n], thing[n:]))
    # A site changed its shape if both sides have shapes there that the other side lacks.
    alone_a, alone_b = in_b[thing[:n]] == 0, in_a[thing[n:]] == 0
    both = np.intersect1d(site[:n][alone_a], site[n:][alone_b])
    changed = np.r_[alone_a, alone_b] & np.isin(site, both) & ~unlocated
    entry = _number_rows([np.where(changed, site, -1), np.where(changed, -1, thing)])
    count = int(entry.max(initial=-1)) + 1

    def largest(side: _Side, which: I64) -> I64:
        found = np.full(count, -1, dtype=np.int64)
        found[which[::-1]] = side.rows[::-1]  # rows are largest first; the last assignment wins
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


def _sites(a: _Side, b: _Side, matching: LineMatching, labels: Iterable[Sequence[_Labels]]) -> tuple[I64, Mask]:
    """Return each row's site, by model path, source and operation, or by name if it has neither path nor source.

    Rows of one site have the same labels. Also return a mask of the rows that have only a name: a compiler's name such
    as `copy.92` is not a location.
    """
    scope, op = (_column_of_both(a, b, column) for column in ("scope", "op"))
    chain = np.r_[matching.chain[0], matching.chain[1]]
    # In a device profile, only the name distinguishes an executable from an array of the same line.
    nameless = (scope.codes < 0) & ((chain < 0) | (op.codes < 0))
    renamed = np.full(len(chain), -1, dtype=np.int64)
    renamed[nameless] = _number_names(_column_of_both(a, b, "name").take(np.flatnonzero(nameless)))
    site = _number_rows([chain, scope.codes, op.codes, renamed, *(_number_labels(*pair) for pair in labels)])
    return site, (scope.codes < 0) & (chain < 0)


def _number_labels(a: _Labels, b: _Labels) -> I64:
    """Number the labels of both sides' rows; equal names get the same number."""
    known: dict[str, int] = {}
    numbers = [np.array([known.setdefault(name, len(known)) for name in side.names], np.int64) for side in (a, b)]
    found: I64 = np.r_[numbers[0][a.code], numbers[1][b.code]]
    return found


def _number_names(names: Text) -> I64:
    """Number the names, ignoring digits in them, which compilers assign anew each time."""
    used, which = np.unique(names.codes, return_inverse=True)
    known: dict[str, int] = {}
    texts = (DIGITS.sub("*", names.strings[code]) if code >= 0 else "" for code in used.tolist())
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)[which]


def _column_of_both(a: _Side, b: _Side, column: str) -> Text:
    return concatenate_text([getattr(side.recording.allocations, column).take(side.rows) for side in (a, b)])


def _number_rows(columns: list[Codes]) -> I64:
    """Number the rows from 0; rows that agree in all columns get the same number."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        part = column.astype(np.int64) - int(column.min(initial=0))
        # Renumbered each time, so that the key (rows x 32 bits) never overflows.
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
    """Return the bytes of each label."""
    charge = side.recording.allocations.charge[side.rows]
    of_each = np.bincount(labels.code, charge, len(labels.names)).astype(np.int64).tolist()
    sums: dict[str, int] = {}
    for name, size in zip(labels.names, of_each, strict=True):
        if size:
            sums[name] = sums.get(name, 0) + size
    return sums


def _step_of(entries: Entries, sides: tuple[_Side, _Side], labels: list[_Labels], steps: list[Step]) -> I64:
    """Return the step of each entry."""
    number = {step.label: i for i, step in enumerate(steps)}
    found = np.full(len(entries.row_a), -1, dtype=np.int64)
    for side, of_side, row in zip(sides, labels, (entries.row_a, entries.row_b), strict=True):
        of_row = np.full(len(side.recording.allocations), -1, dtype=np.int64)
        of_row[side.rows] = np.array([number.get(name, -1) for name in of_side.names])[of_side.code]
        found[row >= 0] = of_row[row[row >= 0]]
    return found


def _labels(side: _Side, matching: LineMatching, number: int, by: CompareBy) -> _Labels:
    code: Codes
    if by is CompareBy.ROLE:
        code, names = roles(side.recording)[side.rows], [_role_name(side.recording, role) for role in Role]
    elif by is CompareBy.SOURCE:
        code, names = matching.line[number], [*matching.names, NO_LINE]
    else:
        forest = classification.forest(side.recording, classification.Classification.MODEL)
        code, names = forest.leaf[side.rows], _layers(forest)
    # Rows without a code get the last name.
    return _Labels(np.where(code >= 0, code, len(names) - 1), names)


def _role_name(recording: Recording, role: Role) -> str:
    # In a device profile, everything but executables is an array's buffer.
    known = not recording.kind.has_call_graph or role is not Role.UNKNOWN
    return role.label if known else "live arrays"


def _layers(forest: classification.Forest) -> list[str]:
    """Return the layer of each node: its path up to the first name with a number, at most two names."""
    names: list[str] = []
    complete: list[bool] = []
    for node, parent in enumerate(forest.parent.tolist()):
        label = forest.label[node]
        if parent < 0:
            names.append(label)
            complete.append(False)
        elif complete[parent]:
            names.append(names[parent])
            complete.append(True)
        else:
            names.append(f"{names[parent]} / {label}")
            complete.append(bool(DIGITS.search(label)) or names[parent].count(" / ") >= 1)
    return [*names, "no model path"]
