"""What grows over a series of recordings of one moment each, by the lines that allocate it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.leaks.classify import SiteTable, Verdict, classify, theil_sen_slope
from tb_memplugin.analysis.leaks.over_steps import MAX_SITES, MAX_WARM_UP, WARM_UP_SHARE, Leaks, LeakSites
from tb_memplugin.analysis.ownership.frames import callers_first
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.analysis.usage.steps import MIN_STEPS, Steps
from tb_memplugin.model.arrays import F64, I64, U8
from tb_memplugin.model.recording import Recording

MAX_PROFILES = 1024  # the last ones: a table of sites by profiles has a bound
NUMBERS = re.compile(r"([0-9]{1,18})")

Key = tuple[int, str, str, int]  # caller, function, file, line


class Growth(NamedTuple):
    """`leaks.sites` has a site per line and role, its `live` one column per recording of the series."""

    series: list[Recording]  # in order
    leaks: Leaks
    holder: I64  # per site: the last of the series that holds it, which `leaks.sites.row` is a row of
    total: I64  # bytes of each recording


def growth(recordings: Sequence[Recording]) -> Growth:
    """In the order of their steps, where all tell one, else of their names as people count."""
    series = sort_series(recordings)[-MAX_PROFILES:]
    live, holder, row, allocations = _site_table(series)
    held = np.argsort(-live.sum(axis=1), kind="stable")[:MAX_SITES]
    left_out = len(live) - len(held)
    live, holder, row, allocations = live[held], holder[held], row[held], allocations[held]
    count = len(series)
    warm_up = min(max(1, count // WARM_UP_SHARE), MAX_WARM_UP)
    looked_at = np.arange(count, dtype=np.int64)
    enough = count >= MIN_STEPS
    message = "" if enough else f"A trend shows over {MIN_STEPS} profiles or more: save one after each of some steps."
    verdict, evidence, confidence = _classify(live, warm_up - 1) if enough else _unclassified(len(live))
    sites = LeakSites(
        row=row,
        sized=np.zeros(len(row), dtype=bool),
        allocations=allocations,
        survived=np.zeros(len(row)),
        live=live,
        bytes_per_step=theil_sen_slope(live, looked_at, warm_up - 1) if enough else np.zeros(len(row)),
        verdict=verdict,
        evidence=evidence,
        confidence=confidence,
        freed_later=np.zeros(len(row)),
    )
    order = np.lexsort((-live[:, -1], -sites.bytes_per_step, sites.verdict != Verdict.LEAK)) if count else held
    steps = Steps(looked_at, "profile", True, message)
    found = Leaks(steps, warm_up, looked_at, 0, left_out, LeakSites._make(column[order] for column in sites))
    return Growth(series, found, holder[order], np.array([int(r.allocations.charge.sum()) for r in series], np.int64))


def find_series(recording: Recording, recordings: Sequence[Recording]) -> list[Recording]:
    """Those of the same kind and memory whose files differ in their numbers alone: memory1.prof to memory9.prof."""

    def thread(other: Recording) -> tuple[str, str, str]:
        return other.kind, other.memory, NUMBERS.sub("*", other.title)

    return [other for other in recordings if thread(other) == thread(recording)]


def sort_series(recordings: Sequence[Recording]) -> list[Recording]:
    steps = [r.capture_info.step for r in recordings if r.capture_info is not None and r.capture_info.step is not None]
    if len(steps) < len(recordings):
        return sorted(recordings, key=lambda recording: natural_key(recording.title))
    return [
        recordings[i] for i in sorted(range(len(steps)), key=lambda i: (steps[i], natural_key(recordings[i].title)))
    ]


def natural_key(name: str) -> list[tuple[int, str]]:
    """The order in which people count: memory2 before memory10."""
    parts = NUMBERS.split(name)
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts]


def _classify(live: I64, since: int) -> tuple[U8, I64, F64]:
    """Profiles do not say which allocation of one is which of the next. What a site never falls below again stays."""
    floor = np.minimum.accumulate(live[:, ::-1], axis=1)[:, ::-1]
    staying = np.diff(floor, axis=1, prepend=0)
    return classify(SiteTable(live, staying), since, np.full(len(live), np.inf))


def _unclassified(sites: int) -> tuple[U8, I64, F64]:
    return np.full(sites, Verdict.STEADY, np.uint8), np.zeros(sites, np.int64), np.zeros(sites)


def _site_table(series: Sequence[Recording]) -> tuple[I64, I64, I64, I64]:
    """Bytes of each site in each recording; the last recording that has it, its largest row there, how many it has."""
    chains: dict[Key, int] = {}
    sites: dict[tuple[int, int], int] = {}
    cells: list[tuple[I64, I64]] = []
    holder, row, allocations = dict[int, int](), dict[int, int](), dict[int, int]()
    for number, recording in enumerate(series):
        rows = live_rows(recording, 0)
        chain = _number_user_stacks(recording, rows, chains)
        keys, first, which = np.unique(
            np.stack([chain, recording.allocations.role[rows]], axis=1), axis=0, return_index=True, return_inverse=True
        )
        site = np.array([sites.setdefault((one, role), len(sites)) for one, role in keys.tolist()], dtype=np.int64)
        size = np.bincount(which.ravel(), recording.allocations.charge[rows], len(keys)).astype(np.int64)
        counts = np.ones(len(rows), np.int64) if recording.counts is None else recording.counts[rows]
        many = np.bincount(which.ravel(), counts, len(keys)).astype(np.int64)
        for s, r, n in zip(site.tolist(), rows[first].tolist(), many.tolist(), strict=True):
            holder[s], row[s], allocations[s] = number, r, n
        cells.append((site, size))
    live = np.zeros((len(sites), len(series)), dtype=np.int64)
    for number, (site, size) in enumerate(cells):
        live[site, number] = size
    last, example, many_of = (
        np.array([of[s] for s in range(len(sites))], np.int64) for of in (holder, row, allocations)
    )
    return live, last, example, many_of


def _number_user_stacks(recording: Recording, rows: I64, known: dict[Key, int]) -> I64:
    """Per row a number for its user's frames; the same in all recordings that share `known`."""
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
