"""The changes between two recordings, as the page shows them; the other forms of a comparison are made of these."""

import re
from collections.abc import Sequence
from typing import Literal, TypedDict, get_args

import numpy as np

from tb_memplugin.analysis.compare.comparison import CompareBy, Comparison, Entries, Step, compare
from tb_memplugin.analysis.compare.facts import take_pairs
from tb_memplugin.analysis.compare.stable_paths import program_name
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED, share
from tb_memplugin.model.arrays import U8
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import Choice, Integer, RecordingOf
from tb_memplugin.questions.asking.json_types import SummaryJson
from tb_memplugin.questions.asking.selectors import time_at
from tb_memplugin.questions.recording.sites import site_text, source_text
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.records import record, records
from tb_memplugin.sizes import bytes_text, signed_bytes, signed_percent

MAX_ENTRIES = 2000  # the largest changes; nobody reads a longer list
MAX_STEPS = 12
REST = "everything else"
MAX_PERCENT = 1000
ChangeKind = Literal["only_a", "only_b", "grown", "shrunk", "same"]
CHANGES: tuple[ChangeKind, ...] = get_args(ChangeKind)
__all__ = ["CompareBy", "Pair", "compared", "pairs"]

Pair = tuple[Recording, Recording]

PROGRAM_ID = re.compile(r"\(\d+\)$")


class ComparedSideJson(TypedDict):
    """One of the two recordings, and the position that is compared; `bytes` are live there."""

    recording: SummaryJson
    position: int
    length: int
    time_ns: int | None
    bytes: int


class WaterfallStepJson(TypedDict):
    """A step of the way from the total of A to the total of B."""

    label: str
    """The role, model path or source line."""
    bytes_a: int
    """Its bytes in A."""
    bytes_b: int
    """Its bytes in B."""


class ChangedJson(TypedDict):
    """The entries that changed in one way, and the sum of their changes in bytes."""

    entries: int
    """The number of entries."""
    bytes: int
    """The sum of their changes."""


class ChangedSiteJson(TypedDict):
    """A site whose live bytes differ; the rows select it in `buffers --row`."""

    change: ChangeKind
    """`only_a`, `only_b`, `grown` or `shrunk`."""
    site: str
    """The innermost source line, or the best other name."""
    source: str
    """The source line."""
    shape: str
    """The shape in B, or if B lacks the site, in A."""
    shape_before: str
    """The shape in A, where it differs."""
    row_a: int | None
    """A row of A."""
    row_b: int | None
    """A row of B."""
    bytes_a: int
    """Live bytes in A."""
    bytes_b: int
    """Live bytes in B."""
    allocations_a: int
    """The number of allocations in A."""
    allocations_b: int
    """The number of allocations in B."""


class ComparedEntryJson(ChangedSiteJson):
    """Allocations of one or both recordings with the same model path, source, operation and shape."""

    name: str
    op: str
    op_name: str
    role: int
    dtype: str
    step: int
    """The step that contains its largest allocation; -1 for none."""


class ComparedJson(TypedDict):
    """The changes between two recordings."""

    verdict: str
    """The result in a word."""
    headline: str
    """The result in a sentence."""
    by: CompareBy
    """The groups that the steps are of: `role`, `model` or `source`."""
    steps: list[WaterfallStepJson]
    """The steps from the bytes of A to the bytes of B, the largest change first."""
    changes: dict[ChangeKind, ChangedJson]
    """The entries by kind of change: `only_a`, `only_b`, `grown`, `shrunk` and `same`."""
    entries_total: int
    """The number of entries that changed."""


class ComparisonJson(ComparedJson):
    """The changes between two recordings, the largest first. Those of the steps add up to that of the totals."""

    a: ComparedSideJson
    b: ComparedSideJson
    entries: list[ComparedEntryJson]
    left_out_bytes: int


@endpoint(
    "compare",
    RecordingOf("a"),
    RecordingOf("b"),
    Integer("at_a", -1, lambda a, b: a.length - 1, optional=True),
    Integer("at_b", -1, lambda a, b, at_a: b.length - 1, optional=True),
    Choice("by", CompareBy),
)
def compared(a: Recording, b: Recording, at_a: int | None, at_b: int | None, by: CompareBy) -> ComparisonJson:
    """Return the changes from `a` to `b`, at the peaks or at positions. InputError where their kinds differ."""
    found = compare(a, b, at_a, at_b, by)
    shown = _kinds(found.entries)[:MAX_ENTRIES].tolist()
    grown = np.abs(found.entries.bytes_b - found.entries.bytes_a)
    steps = _list_steps(found.steps)
    listed = {step.label: i for i, step in enumerate(steps)}
    # Entries of steps that are not listed belong to the last step, the rest.
    step_of = [listed.get(found.steps[i].label, len(steps) - 1) for i in found.step_of[: len(shown)].tolist()]
    return {
        "verdict": verdict(found),
        "headline": headline(a, b, found),
        "a": _moment(a, found.position_a, found.total_a),
        "b": _moment(b, found.position_b, found.total_b),
        "by": by,
        "steps": records(WaterfallStepJson, steps),
        "changes": _changes(found.entries),
        "entries": [_entry(a, b, found.entries, i, kind, step_of[i]) for i, kind in enumerate(shown)],
        "entries_total": len(found.entries.row_a),
        "left_out_bytes": int(grown[len(shown) :].sum()),
    }


def verdict(found: Comparison) -> str:
    """Return a sentence with the change of the total, without names."""
    change = found.total_b - found.total_a
    both = f"{bytes_text(found.total_b)} in B, {bytes_text(found.total_a)} in A"
    if not changed(found):
        return f"Nothing changed: {both}."
    return f"{_amount(change, found.total_a)}: {both}."


def _amount(change: int, before: int) -> str:
    """Return a change in words: in percent, or as a factor above 1000%."""
    if change == 0:
        return "As much as before"
    size, part = bytes_text(abs(change)), share(change, before)
    if part > MAX_PERCENT / 100:
        return f"{size} more, {part + 1:,.0f} times as much"
    return f"{size}{f' ({signed_percent(part)})' if before else ''} {'more' if change > 0 else 'less'}"


def headline(a: Recording, b: Recording, found: Comparison) -> str:
    """Return the change of the total and the largest single change, in sentences."""
    entries = found.entries
    if not changed(found):
        return verdict(found)
    most = int(entries.bytes_b[0] - entries.bytes_a[0]) if len(entries.row_a) else 0
    rest = next((step.bytes_b - step.bytes_a for step in found.steps if step.label == UNEXPLAINED), 0)
    largest = (
        f"{signed_bytes(rest)} unexplained by allocations"
        if abs(rest) > abs(most)
        else f"{signed_bytes(most)} of {_largest_name(a, b, entries)}"
    )
    return f"{verdict(found)} The largest change is {largest}."


def _largest_name(a: Recording, b: Recording, entries: Entries) -> str:
    """Return the name of the largest change, with its shape if another change has the same name."""
    name = _name(a, b, entries, 0)
    others = np.flatnonzero(entries.bytes_a != entries.bytes_b)[1:MAX_ENTRIES].tolist()
    recording, row = _example(a, b, entries, 0)
    shape = recording.allocations.shape[row]
    return f"{name}, {shape}" if shape and any(_name(a, b, entries, i) == name for i in others) else name


def changed(found: Comparison) -> bool:
    moved = bool((found.entries.bytes_a != found.entries.bytes_b).any())
    return moved or found.total_a != found.total_b


def pairs(a: Sequence[Recording], b: Sequence[Recording]) -> list[Pair]:
    """Return the matching recordings of two listings, in the first's order.

    If both listings have one recording, these two match. Device profiles, whose titles differ, match by their devices.
    """
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    rest_a, rest_b = list(a), list(b)
    # A title is compared without the program's id, which differs after every change; then without the number of a
    # dump's module, which differs after every change of another module.
    found = take_pairs(rest_a, rest_b, lambda one: (one.kind, PROGRAM_ID.sub("", one.title), one.memory))
    found += take_pairs(rest_a, rest_b, lambda one: (one.kind, program_name(one.title), one.memory))
    if not found and _is_profile(a) and _is_profile(b):
        return take_pairs(rest_a, rest_b, lambda one: (one.kind, one.memory))
    return found


def _is_profile(recordings: Sequence[Recording]) -> bool:
    """Return whether all recordings are the devices of one device profile or snapshot."""
    is_one = len({(recording.source, recording.title) for recording in recordings}) == 1
    return is_one and all(recording.kind.has_call_graph or recording.kind.is_torch for recording in recordings)


def _moment(recording: Recording, position: int, total: int) -> ComparedSideJson:
    return {
        "recording": summary(recording),
        "position": position,
        "length": recording.length,
        "time_ns": time_at(recording, position),
        "bytes": total,
    }


def _list_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the largest steps, in their order, and one step for the rest, so that the sum stays the same."""
    moved = sorted(steps, key=lambda step: -abs(step.bytes_b - step.bytes_a))
    chosen = set(moved[:MAX_STEPS])
    rest = moved[MAX_STEPS:]
    listed = [step for step in steps if step in chosen]
    if rest:
        listed.append(Step(REST, sum(step.bytes_a for step in rest), sum(step.bytes_b for step in rest)))
    return listed


def _changes(entries: Entries) -> dict[ChangeKind, ChangedJson]:
    """Return the number of entries and the sum of their changes, for each kind of change."""
    moved, kinds = entries.bytes_b - entries.bytes_a, _kinds(entries)
    return {
        kind: {"entries": int((kinds == i).sum()), "bytes": int(moved[kinds == i].sum())}
        for i, kind in enumerate(CHANGES)
    }


def _kinds(entries: Entries) -> U8:
    """Return the index in CHANGES of each entry's kind of change."""
    moved = entries.bytes_b - entries.bytes_a
    cases = [entries.row_b < 0, entries.row_a < 0, moved > 0, moved < 0]
    return np.select(cases, range(4), 4).astype(np.uint8)


def _entry(a: Recording, b: Recording, entries: Entries, i: int, kind: int, step: int) -> ComparedEntryJson:
    recording, row = _example(a, b, entries, i)
    rows, figures = recording.allocations, Entries._make(column[i].item() for column in entries)
    before = a.allocations.shape[int(figures.row_a)] if figures.reshaped else ""
    return record(
        ComparedEntryJson,
        figures,
        {column: getattr(rows, column)[row] for column in ("name", "op", "op_name", "dtype", "shape")},
        change=CHANGES[kind],
        site=_name(a, b, entries, i),
        source=source_text(recording, row),
        role=int(roles(recording)[row]),
        shape_before=before if before != rows.shape[row] else "",
        row_a=figures.row_a if figures.row_a >= 0 else None,
        row_b=figures.row_b if figures.row_b >= 0 else None,
        step=step,
    )


def _example(a: Recording, b: Recording, entries: Entries, i: int) -> tuple[Recording, int]:
    """Return the largest allocation of an entry, in the second recording if the entry has any there."""
    return (b, int(entries.row_b[i])) if entries.row_b[i] >= 0 else (a, int(entries.row_a[i]))


def _name(a: Recording, b: Recording, entries: Entries, i: int) -> str:
    recording, row = _example(a, b, entries, i)
    return recording.allocations.op_name[row] or site_text(recording, row)
