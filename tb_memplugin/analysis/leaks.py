"""What grows from step to step, by the site that allocates it.

A leak is told from a cache, a warm-up and a sawtooth by two questions about each site: do bytes that it allocated in
one step after another stay until the end, and does what it holds at the end of a step keep rising? Either alone is
not enough: a full pool that replaces its entries at random keeps some of every age, and noise may rise for a while.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.once import once
from tb_memplugin.analysis.sites import sites_of
from tb_memplugin.analysis.steps import Steps, steps
from tb_memplugin.recording import F64, I64, U8, Recording

Bools = npt.NDArray[np.bool_]

# Compilation, autotuning and first use are over after a few steps; what grows later is what the loop does.
WARM_UP_SHARE, WARM_UP_MOST = 4, 10
# Bounds on the tables of sites by steps: 32 MB each. Sites are those that hold the most from step to step; of more
# steps than this every second, third, ... end is looked at.
MAX_SITES, MAX_STEPS = 4096, 1024
SLOPE_POINTS = 33  # 528 pairs of steps a site: the median of so many slopes is no better for having more


class Verdict(IntEnum):
    """Worst first."""

    LEAK = 0  # grows to the end, and nothing says that it will stop
    CACHE = 1  # grew after the warm-up, and has stopped
    SAWTOOTH = 2  # grows for some steps, is freed at once, and grows again
    KEPT = 3  # each allocation is freed one step after its own
    WARM_UP = 4  # what it holds was allocated in the first steps
    STEADY = 5


class Sites(NamedTuple):
    """One entry per site that holds memory at the end of some step: leaks first, then by growth."""

    row: I64  # an allocation of the site: the last that reached the end of a step
    allocations: I64
    survived: F64  # ends of steps that its median allocation lived to see
    live: I64  # bytes at the end of each step looked at: sites x len(Leaks.looked_at)
    bytes_per_step: F64  # after the warm-up, by Theil and Sen: the median over pairs of steps
    verdict: U8
    evidence: I64  # how many steps speak for the verdict
    confidence: F64  # 0 to 1


class Leaks(NamedTuple):
    steps: Steps
    warm_up: int  # steps
    looked_at: I64  # which steps' ends
    within_step: int  # allocations that saw no end of a step
    left_out: int  # sites beyond MAX_SITES
    sites: Sites | None  # None where there are too few steps


class _Table(NamedTuple):
    """Bytes of each site (rows) at the end of each step (columns)."""

    live: I64
    staying: I64  # those born since the end before that are still live at the end of the last


@once
def leaks(recording: Recording) -> Leaks:
    """Growth per step of every site. What was live before the recording cannot grow in it, and is no site's."""
    when = steps(recording)
    count = len(when.position)
    if not count:
        return Leaks(when, 0, when.position, 0, 0, None)
    rows = recording.allocations
    first = np.searchsorted(when.position, rows.start)  # the first step's end that a row is live at, if it gets there
    last = np.searchsorted(when.position, rows.end)  # the first that it is freed by
    own = np.flatnonzero((rows.start >= 0) & (rows.charge > 0) & (first < count))
    first, last, charge = first[own], last[own], rows.charge[own]
    site, sites = sites_of(rows, own)
    held = np.bincount(site, charge * (last - first), sites)
    chosen = np.argsort(-held, kind="stable")[: min(MAX_SITES, int((held > 0).sum()))]

    stride = -(-count // MAX_STEPS)
    looked_at = np.arange(count - 1, -1, -stride, dtype=np.int64)[::-1]
    number = np.full(sites, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    shown = np.flatnonzero((number[site] >= 0) & (last > first))
    lives = number[site[shown]], first[shown], last[shown]
    table = _table(*lives, charge[shown], looked_at, len(chosen))
    example = np.zeros(len(chosen), dtype=np.int64)
    np.maximum.at(example, lives[0], own[shown])

    warm_up = min(max(1, count // WARM_UP_SHARE), WARM_UP_MOST)
    since = int(np.searchsorted(looked_at, warm_up - 1))  # from here on
    survived = _median_of_each(site, last - first, sites, count)[chosen]
    verdict, evidence, confidence = _judge(table, since, survived)
    slope = _slope(table.live, looked_at, since)
    judged = Sites(
        row=example,
        allocations=np.bincount(site, minlength=sites)[chosen],
        survived=survived,
        live=table.live,
        bytes_per_step=slope,
        verdict=verdict,
        evidence=np.minimum(evidence * stride, count),
        confidence=confidence if when.marked else confidence / 2,
    )
    order = np.lexsort((-table.live[:, -1], -slope, verdict != Verdict.LEAK))
    return Leaks(
        steps=when,
        warm_up=warm_up,
        looked_at=looked_at,
        within_step=int((first == last).sum()),
        left_out=int((held > 0).sum()) - len(chosen),
        sites=Sites._make(column[order] for column in judged),
    )


def _table(site: I64, first: I64, last: I64, charge: I64, looked_at: I64, sites: int) -> _Table:
    """From rows that are live at the ends of steps first..last-1."""
    final = looked_at[-1] < last
    first, last = np.searchsorted(looked_at, first), np.searchsorted(looked_at, last)
    width = len(looked_at) + 1

    def sums(column: I64, amount: I64) -> F64:
        summed: F64 = np.bincount(site * width + column, amount, sites * width).astype(np.float64)
        return summed.reshape(sites, width)

    live = np.cumsum(sums(first, charge) - sums(last, charge), axis=1)[:, :-1]
    return _Table(live.astype(np.int64), sums(first, charge * final)[:, :-1].astype(np.int64))


def _median_of_each(site: I64, values: I64, sites: int, bound: int) -> F64:
    """The median of the values, 0..bound, of each site's rows; the lower one of two."""
    order = np.sort(site * (bound + 1) + values)
    counts = np.bincount(site, minlength=sites)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    return (order[middle] % (bound + 1)).astype(np.float64) if len(order) else np.zeros(sites)


def _judge(table: _Table, since: int, survived: F64) -> tuple[U8, I64, F64]:
    """Verdict, evidence and confidence of each site, from what it holds from step `since` on."""
    live = table.live[:, since:]
    if not len(live):
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0)
    span = live.shape[1] - 1
    change = np.diff(live, axis=1)
    floor = np.minimum.accumulate(live[:, ::-1], axis=1)[:, ::-1]  # it never falls below this again
    growth = floor[:, -1] - floor[:, 0]
    fell = (live - floor).max(axis=1)
    goes_on = 6 * (floor[:, -1] - floor[:, -1 - span // 3]) >= growth  # in the last third, at half its rate or more

    grew, gap, idle = _occasions(table.staying[:, since + 1 :] > 0)
    # No third of the steps without bytes that stay, and none for twice as long as ever before at the end.
    stays = (grew >= 3) & (3 * gap <= span) & (3 * idle <= span) & (idle < 2 * gap)
    replaced = (change > 0).all(axis=1)  # by a larger one each step, so that nothing old stays
    leak = (stays & (growth > fell) & goes_on) | replaced

    falls, between, _ = _occasions(change < 0)
    height = live.max(axis=1) - live.min(axis=1)
    deep = ((change >= 0) | (-2 * change >= height[:, None])).all(axis=1) & (4 * height >= live.max(axis=1))
    rises = (change > 0).sum(axis=1)
    # All falls are deep, and at least as rare as the rises; regular, if there are several.
    regular = np.where(falls > 1, (falls - 1) * between <= span, rises > 1)
    sawtooth = deep & (falls > 0) & (rises >= falls) & regular

    holds = live[:, -1] > 0
    warm_up = holds & (grew == 0) & (fell == 0) & (growth == 0)
    cache = holds & (grew > 0) & (growth > fell) & (idle >= 2 * gap)
    kept = (survived == 1) & (3 * (live[:, 1:] > 0).sum(axis=1) >= 2 * span)

    found = [leak, sawtooth, warm_up, cache, kept]
    names = [Verdict.LEAK, Verdict.SAWTOOTH, Verdict.WARM_UP, Verdict.CACHE, Verdict.KEPT]
    verdict = np.select(found, names, Verdict.STEADY).astype(np.uint8)
    evidence = np.select(found, [np.where(stays, grew, span), falls, idle, idle, (live > 0).sum(axis=1)], span)
    # As if each step were a coin that could have spoken against; of a leak, less what it gave back on the way.
    confidence = 1 - 0.5 ** np.minimum(evidence, 50)
    confidence = np.where(leak, confidence * growth / np.maximum(growth + fell, 1), confidence)
    return verdict, evidence.astype(np.int64), confidence


def _occasions(happens: Bools) -> tuple[I64, I64, I64]:
    """Per row of a table of steps: on how many it happens, the longest way from one to the next, and since the last.

    The first is reached from the step before the table.
    """
    step = np.arange(1, happens.shape[1] + 1)
    latest = np.maximum.accumulate(np.where(happens, step, 0), axis=1)
    ways = np.diff(latest, axis=1, prepend=0)
    return happens.sum(axis=1), ways.max(axis=1), happens.shape[1] - latest[:, -1]


def _slope(live: I64, looked_at: I64, since: int) -> F64:
    """Bytes per step: the median over all pairs of (at most SLOPE_POINTS) steps."""
    points = np.unique(np.linspace(since, len(looked_at) - 1, SLOPE_POINTS).round().astype(np.int64))
    early, late = np.triu_indices(len(points), 1)
    chosen, step = live[:, points], looked_at[points]
    slopes = (chosen[:, late] - chosen[:, early]) / (step[late] - step[early])
    return np.median(slopes, axis=1) if len(live) else np.empty(0)
