"""Growth over a series of snapshots, and between the first and the last one, by the lines that allocate."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.leaks.classify import SiteTable, Verdict, classify, theil_sen_slope
from tb_memplugin.analysis.leaks.over_steps import MAX_SITES, MAX_WARM_UP, WARM_UP_SHARE, Leaks, LeakSites
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.source_lines import base_name, callers_first, heavy_lines
from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.analysis.usage.steps import MIN_STEPS, Steps
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.numbered_names import natural_key, split_name

MAX_PROFILES = 1024  # the last ones; bounds the table of sites by profiles

Key = tuple[int, str, str, int]  # caller, function, file, line


class Growth(NamedTuple):
    """Growth over a series. `leaks.sites` has a site per line and role; `live` has one column per recording."""

    series: list[Recording]  # in order
    leaks: Leaks
    holder: I64  # per site: the last recording of the series that contains it; `leaks.sites.row` is a row of it
    total: I64  # bytes of each recording


def growth(recordings: Sequence[Recording]) -> Growth:
    """Measure growth over recordings, in order of their steps if all have one, else in natural order of their names."""
    series = sort_series(recordings)[-MAX_PROFILES:]
    live, holder, row, allocations = _site_table(series)
    held = np.argsort(-live.sum(axis=1), kind="stable")[:MAX_SITES]
    left_out = len(live) - len(held)
    live, holder, row, allocations = live[held], holder[held], row[held], allocations[held]
    count = len(series)
    warm_up = min(max(1, count // WARM_UP_SHARE), MAX_WARM_UP)
    sampled_steps = np.arange(count, dtype=np.int64)
    enough = count >= MIN_STEPS
    message = "" if enough else f"A trend needs at least {MIN_STEPS} profiles: save one after each of several steps."
    zeros = np.zeros(len(row))
    sites = LeakSites(
        row=row,
        sized=np.zeros(len(row), dtype=bool),
        allocations=allocations,
        survived=zeros,
        live=live,
        bytes_per_step=zeros,
        verdict=np.full(len(row), Verdict.STEADY, np.uint8),
        evidence=np.zeros(len(row), np.int64),
        confidence=zeros,
        freed_later=zeros,
    )
    if enough:
        # Profiles identify no allocations: bytes below which a site never falls again count as staying.
        floor = np.minimum.accumulate(live[:, ::-1], axis=1)[:, ::-1]
        table = SiteTable(live, staying=np.diff(floor, axis=1, prepend=0))
        verdict, evidence, confidence = classify(table, warm_up - 1, np.full(len(live), np.inf))
        slope = theil_sen_slope(live, sampled_steps, warm_up - 1)
        sites = sites._replace(verdict=verdict, evidence=evidence, confidence=confidence, bytes_per_step=slope)
    order = np.lexsort((-live[:, -1], -sites.bytes_per_step, sites.verdict != Verdict.LEAK)) if count else held
    steps = Steps(sampled_steps, "profile", True, message)
    found = Leaks(steps, warm_up, sampled_steps, 0, left_out, LeakSites._make(column[order] for column in sites))
    return Growth(series, found, holder[order], np.array([int(r.allocations.charge.sum()) for r in series], np.int64))


def find_series(recording: Recording, recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings of one kind, memory and rank whose file names differ only in numbers: memory1, memory2."""

    def thread(other: Recording) -> tuple[str, str, tuple[str, ...]]:
        return other.kind, other.memory, split_name(other.title).texts

    return [other for other in recordings if thread(other) == thread(recording)]


def sort_series(recordings: Sequence[Recording]) -> list[Recording]:
    steps = [r.capture_info.step for r in recordings if r.capture_info is not None and r.capture_info.step is not None]
    if len(steps) < len(recordings):
        return sorted(recordings, key=lambda recording: natural_key(recording.title))
    return [
        recordings[i] for i in sorted(range(len(steps)), key=lambda i: (steps[i], natural_key(recordings[i].title)))
    ]


def _site_table(series: Sequence[Recording]) -> tuple[I64, I64, I64, I64]:
    """Return bytes per site and recording; and per site its last recording, its largest row and its count there."""
    chains: dict[Key, int] = {}
    sites: dict[tuple[int, int], int] = {}
    found: list[tuple[I64, I64, I64, I64]] = []  # of each recording: its sites, and a row, a count and bytes of each
    for recording in series:
        rows = live_rows(recording, 0)
        chain = _number_user_stacks(recording, rows, chains)
        role = recording.allocations.role[rows]
        groups = group_rows([chain, role])
        keys = zip(chain[groups.first].tolist(), role[groups.first].tolist(), strict=True)
        site = np.array([sites.setdefault(key, len(sites)) for key in keys], dtype=np.int64)
        size, many = groups.sums(recording.allocations.charge[rows]), groups.sums(recording.allocation_counts(rows))
        found.append((site, rows[groups.first], many, size))
    live = np.zeros((len(sites), len(series)), dtype=np.int64)
    holder, row, allocations = np.zeros((3, len(sites)), dtype=np.int64)
    for number, (site, largest, many, size) in enumerate(found):
        live[site, number] = size
        holder[site], row[site], allocations[site] = number, largest, many
    return live, holder, row, allocations


def _number_user_stacks(recording: Recording, rows: I64, known: dict[Key, int]) -> I64:
    """Number the user's frames of each row; recordings that share `known` share numbers."""
    stacks, leaves = recording.stacks, recording.allocations.stack[rows]
    number = {-1: -1}
    for at in callers_first(stacks, np.unique(leaves).tolist()):
        caller = number[at.caller]
        if at.framework:
            number[at.frame] = caller
            continue
        key = (caller, stacks.function[at.frame], stacks.file[at.frame], int(stacks.line[at.frame]))
        number[at.frame] = known.setdefault(key, len(known))
    distinct, which = np.unique(leaves, return_inverse=True)
    return np.array([number.get(leaf, -1) for leaf in distinct.tolist()], dtype=np.int64)[which]


class GrownLine(NamedTuple):
    """The line that grew most from `first` to `last`. Growth is in bytes."""

    first: Recording
    last: Recording
    bytes: int  # growth of all lines together
    line: str  # without its folders
    line_bytes: int


def snapshots_of(curve: Recording, others: Iterable[Recording]) -> list[Recording]:
    """Return the snapshots of a watched device, in order of time, or of their names where they have no time."""
    taken = (
        other
        for other in others
        if (other.run, other.memory) == (curve.run, curve.memory)
        and not (other.kind.is_sampled or other.kind.is_failure)
    )
    return sorted(taken, key=lambda other: (_time_ns(other), natural_key(other.title)))


def _time_ns(recording: Recording) -> int:
    return (recording.capture_info and recording.capture_info.time_ns) or 0


def rise(curve: Recording, others: Iterable[Recording]) -> GrownLine | None:
    """Return the growth over a watched device's snapshots; None if there are fewer than two, or no known line grew."""
    taken = snapshots_of(curve, others)
    if len(taken) < 2 or not taken[0].length or not taken[-1].length:
        return None
    first, last = taken[0], taken[-1]
    before, after = _lines_at_end(first), _lines_at_end(last)
    grown = {line: size - before.get(line, 0) for line, size in after.items()}
    line = max(grown, key=grown.__getitem__, default="")
    total = int(usage(last).live[-1]) - int(usage(first).live[-1])
    return GrownLine(first, last, total, base_name(line), grown[line]) if line and min(total, grown[line]) > 0 else None


@memoize
def _lines_at_end(recording: Recording) -> Mapping[str, int]:
    """Return the live bytes of each line at the last position."""
    found, _ = heavy_lines(recording, recording.length - 1, None)
    return {each.line: each.bytes for each in found}
