"""Changes between two recordings, or two moments of one, matched by content and not by ids."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.call_graph import concatenate_text
from tb_memplugin.analysis.compare.line_matching import LineMatching, match_lines
from tb_memplugin.analysis.compare.stable_paths import map_texts, template
from tb_memplugin.analysis.ownership import classification
from tb_memplugin.analysis.ownership.by_model import NO_PATH
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED, live_rows, unexplained_bytes
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.native.row_groups import RowGroups, group_rows

NUMBER = re.compile(r"\d")
LIVE_ARRAYS = "live arrays"  # in a device profile, everything but executables is an array's buffer


class CompareBy(StrEnum):
    """The groups of the steps from one total to the other."""

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
    """The bytes of one label on both sides."""

    label: str
    bytes_a: int
    bytes_b: int


class Comparison(NamedTuple):
    """Two recordings compared. The steps' changes add up to `total_b - total_a`."""

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
    charge: I64
    allocations: I64
    unexplained: int

    @property
    def total(self) -> int:
        return int(self.charge.sum()) + self.unexplained


_Sides = tuple[_Side, _Side]


def compare(
    a: Recording, b: Recording, at_a: int | None = None, at_b: int | None = None, by: CompareBy = CompareBy.ROLE
) -> Comparison:
    """Compare two recordings at these positions, by default at their peaks. InputError if their kinds differ."""
    if a.kind != b.kind:
        remedy = f"compare a {a.kind} with a {a.kind}: their figures mean the same"
        raise InputError("Recordings of two kinds", f"{a.kind} and {b.kind}", remedy)
    sides = _side(a, at_a), _side(b, at_b)
    matching = match_lines(a, sides[0].rows, b, sides[1].rows)
    # Layers split entries only if the caller asks for layers, because they take longer than everything else.
    labels = {each: _labels(sides, matching, each) for each in (CompareBy.ROLE, CompareBy.SOURCE, by)}
    entries, example = _entries(sides, matching, labels.values())
    steps = _steps(sides, labels[by])
    number = {step.label: i for i, step in enumerate(steps)}
    step_of = labels[by].take(example).map(number.__getitem__, -1, np.int64)
    return Comparison(sides[0].position, sides[1].position, sides[0].total, sides[1].total, entries, steps, step_of)


def _side(recording: Recording, at: int | None) -> _Side:
    position = peak(recording).position if at is None else at
    rows = live_rows(recording, position)
    charge, counts = recording.allocations.charge[rows], recording.allocation_counts(rows)
    return _Side(recording, position, rows, charge, counts, unexplained_bytes(recording, position))


def _entries(sides: _Sides, matching: LineMatching, labels: Iterable[Text]) -> tuple[Entries, I64]:
    """Return the entries, and for each entry one of its rows, as an index into the rows of both sides."""
    n = len(sides[0].rows)
    site, unlocated = _sites(sides, matching, labels)
    thing = group_rows([site, *(_column(sides, name).codes for name in ("shape", "dtype"))]).number
    # A site changed its shape if both sides have shapes there that the other side lacks.
    alone_a, alone_b = ~np.isin(thing[:n], thing[n:]), ~np.isin(thing[n:], thing[:n])
    both = np.intersect1d(site[:n][alone_a], site[n:][alone_b])
    changed = np.r_[alone_a, alone_b] & np.isin(site, both) & ~unlocated
    entry = group_rows([np.where(changed, site, -1), np.where(changed, -1, thing)])
    rows, sizes, counts = list[I64](), list[I64](), list[I64]()
    for side, of_side in zip(sides, (slice(None, n), slice(n, None)), strict=True):
        own = RowGroups(entry.number[of_side], entry.first)
        largest = np.full(len(own.first), -1, dtype=np.int64)
        largest[own.number[::-1]] = side.rows[::-1]  # rows are largest first; the last assignment wins
        rows.append(largest)
        sizes.append(own.sums(side.charge))
        counts.append(own.sums(side.allocations))
    order = np.lexsort((-np.maximum(*sizes), -np.abs(sizes[1] - sizes[0])))
    found = Entries(rows[0], rows[1], sizes[0], sizes[1], counts[0], counts[1], changed[entry.first])
    return Entries._make(column[order] for column in found), entry.first[order]


def _sites(sides: _Sides, matching: LineMatching, labels: Iterable[Text]) -> tuple[I64, Mask]:
    """Return each row's site, by model path, source and operation, or by name if it has neither path nor source.

    Rows of one site have the same labels. Also return a mask of the rows that have only a name: a compiler's name such
    as `copy.92` is not a location.
    """
    scope, op = (_column(sides, column) for column in ("op_name", "op"))
    chain = np.r_[matching.chain[0], matching.chain[1]]
    # In a device profile, only the name distinguishes an executable from an array of the same line.
    nameless = (scope.codes < 0) & ((chain < 0) | (op.codes < 0))
    renamed = np.full(len(chain), -1, dtype=np.int64)
    # Compilers number names anew with each compile, so that digits in them are ignored.
    renamed[nameless] = map_texts(_column(sides, "name").take(np.flatnonzero(nameless)), template).codes
    site = group_rows([chain, scope.codes, op.codes, renamed, *(label.codes for label in labels)]).number
    return site, (scope.codes < 0) & (chain < 0)


def _column(sides: _Sides, column: str) -> Text:
    """Return a column of the rows of both sides."""
    return concatenate_text([getattr(side.recording.allocations, column).take(side.rows) for side in sides])


def _steps(sides: _Sides, labels: Text) -> list[Step]:
    """Return the bytes of each label on both sides, and of memory that no allocation explains."""
    n = len(sides[0].rows)
    sums = [
        np.bincount(codes, side.charge, len(labels.strings)).astype(np.int64).tolist()
        for side, codes in zip(sides, (labels.codes[:n], labels.codes[n:]), strict=True)
    ]
    found = [*map(Step, labels.strings, *sums), Step(UNEXPLAINED, sides[0].unexplained, sides[1].unexplained)]
    steps = [step for step in found if step.bytes_a or step.bytes_b]
    return sorted(steps, key=lambda step: (step.bytes_a - step.bytes_b, -step.bytes_b, step.label))


def _labels(sides: _Sides, matching: LineMatching, by: CompareBy) -> Text:
    """Return the label of each row of both sides."""
    if by is CompareBy.MODEL:
        (code_a, names_a), (code_b, names_b) = map(_layers, sides)
        return Text.of([*names_a, *names_b]).take(np.r_[code_a, code_b + len(names_a)])
    if by is CompareBy.SOURCE:
        return _named(np.r_[matching.line[0], matching.line[1]], [*matching.names, classification.NO_LINE])
    names = [role.label for role in Role]
    if sides[0].recording.kind.has_call_graph:
        names[Role.UNKNOWN] = LIVE_ARRAYS
    return _named(np.concatenate([roles(side.recording)[side.rows] for side in sides]), names)


def _named(code: npt.NDArray[np.integer], names: list[str]) -> Text:
    """Return the name of each code, the last name for codes below 0."""
    return Text.of(names).take(np.where(code >= 0, code, len(names) - 1))


def _layers(side: _Side) -> tuple[I64, list[str]]:
    """Return the layer of each row, its path up to the first name with a number, at most two names: codes and texts."""
    forest = classification.forest(side.recording, classification.Classification.MODEL)
    names: list[str] = []
    complete: list[bool] = []
    for node, parent in enumerate(forest.parent.tolist()):
        label = forest.label[node]
        if parent >= 0 and complete[parent]:
            names.append(names[parent])
            complete.append(True)
        else:
            names.append(f"{names[parent]} / {label}" if parent >= 0 else label)
            complete.append(parent >= 0 and (bool(NUMBER.search(label)) or " / " in names[parent]))
    leaf = forest.leaf[side.rows].astype(np.int64)
    return np.where(leaf >= 0, leaf, len(names)), [*names, NO_PATH]
