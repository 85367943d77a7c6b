"""What grows from step to step, by the site that allocates it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.leaks.classify import SiteTable, Verdict, classify, theil_sen_slope
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.sites import group_by_site
from tb_memplugin.analysis.usage.steps import Steps, steps
from tb_memplugin.model.arrays import F64, I64, U8
from tb_memplugin.model.recording import Recording

# Compilation, autotuning and first use are over after a few steps; what grows later is what the loop does.
WARM_UP_SHARE, MAX_WARM_UP = 4, 10
# Bounds on the tables of sites by steps: 32 MB each. Sites are those that hold the most from step to step; of more
# steps than this every second, third, ... end is looked at.
MAX_SITES, MAX_STEPS = 4096, 1024


class LeakSites(NamedTuple):
    """One entry per site that holds memory at the end of some step: leaks first, then by growth."""

    row: I64  # an allocation of the site: the last that reached the end of a step
    sized: npt.NDArray[np.bool_]  # all of its allocations are of one size and shape, as `row`
    allocations: I64
    survived: F64  # ends of steps that its median allocation lived to see
    live: I64  # bytes at the end of each step looked at: sites x len(Leaks.looked_at)
    bytes_per_step: F64  # after the warm-up, by Theil and Sen: the median over pairs of steps
    verdict: U8
    evidence: I64  # how many steps speak for the verdict
    confidence: F64  # 0 to 1
    freed_later: F64  # the share of what it holds at the end of the last step that is freed after that


class Leaks(NamedTuple):
    steps: Steps
    warm_up: int  # steps
    looked_at: I64  # which steps' ends
    within_step: int  # allocations that saw no end of a step
    left_out: int  # sites beyond MAX_SITES
    sites: LeakSites | None  # None where there are too few steps


class _StepLifetimes(NamedTuple):
    """Allocations made in the recording: live at the ends of steps first..last-1."""

    row: I64
    first: I64
    last: I64
    charge: I64
    freed_later: I64  # those of its bytes that are live at the end of the last step and freed before the recording's


@memoize
def leaks(recording: Recording) -> Leaks:
    """Growth per step of every site. What was live before the recording cannot grow in it, and is no site's.

    A runtime allocates very different things at one place, and the noise of the large ones would hide the leak of a
    small one: so each size is a site of its own. What leaks in ever new sizes shows in the place as a whole, which is
    a finding where it grows more than twice as fast as the leaks of one size in it together.
    """
    when = steps(recording)
    count = len(when.position)
    if not count:
        return Leaks(when, 0, when.position, 0, 0, None)
    rows = recording.allocations
    first, last = np.searchsorted(when.position, rows.start), np.searchsorted(when.position, rows.end)
    own = np.flatnonzero((rows.start >= 0) & (rows.charge > 0) & (first < count))
    later = rows.charge * ((last == count) & (rows.end < recording.length))
    lives = _StepLifetimes(own, first[own], last[own], rows.charge[own], later[own])
    warm_up = min(max(1, count // WARM_UP_SHARE), MAX_WARM_UP)
    stride = -(-count // MAX_STEPS)
    looked_at = np.arange((count - 1) % stride, count, stride, dtype=np.int64)

    site, number = group_by_site(rows, own)
    place, places = group_by_site(rows, own, sized=False)
    sized, left_out = _largest_sites(lives, site, number, looked_at, warm_up, sized=True)
    whole, _ = _largest_sites(lives, place, places, looked_at, warm_up, sized=False)
    leaking = sized.verdict == Verdict.LEAK
    known = np.bincount(place[np.searchsorted(own, sized.row[leaking])], sized.bytes_per_step[leaking], places)
    more = whole.bytes_per_step > 2 * known[place[np.searchsorted(own, whole.row)]]
    more &= whole.verdict == Verdict.LEAK
    found = LeakSites._make(np.r_[getattr(sized, name), getattr(whole, name)[more]] for name in LeakSites._fields)
    found = found._replace(confidence=found.confidence if when.marked else found.confidence / 2)
    order = np.lexsort((-found.live[:, -1], -found.bytes_per_step, found.verdict != Verdict.LEAK))
    return Leaks(
        steps=when,
        warm_up=warm_up,
        looked_at=looked_at,
        within_step=int((lives.first == lives.last).sum()),
        left_out=left_out,
        sites=LeakSites._make(column[order] for column in found),
    )


def _largest_sites(
    lives: _StepLifetimes, site: I64, sites: int, looked_at: I64, warm_up: int, *, sized: bool
) -> tuple[LeakSites, int]:
    """The MAX_SITES sites that hold the most from step to step, judged, and how many more there are."""
    count = int(looked_at[-1]) + 1
    held = np.bincount(site, lives.charge * (lives.last - lives.first), sites)
    chosen = np.argsort(-held, kind="stable")[: min(MAX_SITES, int((held > 0).sum()))]
    number = np.full(sites, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    shown = np.flatnonzero((number[site] >= 0) & (lives.last > lives.first))
    example = np.zeros(len(chosen), dtype=np.int64)
    np.maximum.at(example, number[site[shown]], lives.row[shown])

    seen = _StepLifetimes._make(column[shown] for column in lives)
    table = _site_table(seen, number[site[shown]], looked_at, len(chosen))
    since = int(np.searchsorted(looked_at, warm_up - 1))
    survived = _median_per_site(site, lives.last - lives.first, sites, count)[chosen]
    verdict, evidence, confidence = classify(table, since, survived)
    freed = np.bincount(number[site[shown]], seen.freed_later, len(chosen)) / np.maximum(table.live[:, -1], 1)
    found = LeakSites(
        row=example,
        sized=np.full(len(chosen), sized),
        allocations=np.bincount(site, minlength=sites)[chosen],
        survived=survived,
        live=table.live,
        bytes_per_step=theil_sen_slope(table.live, looked_at, since),
        verdict=verdict,
        evidence=evidence * (looked_at[1] - looked_at[0]),
        # Freed at once when the loop was over, it did leak; freed bit by bit by work that lags behind, it did not.
        confidence=np.where(verdict == Verdict.LEAK, confidence * (1 - freed / 2), confidence),
        freed_later=freed,
    )
    return found, int((held > 0).sum()) - len(chosen)


def _site_table(lives: _StepLifetimes, site: I64, looked_at: I64, sites: int) -> SiteTable:
    final = looked_at[-1] < lives.last
    first, last = np.searchsorted(looked_at, lives.first), np.searchsorted(looked_at, lives.last)
    width = len(looked_at) + 1

    def sums(column: I64, amount: I64) -> F64:
        summed: F64 = np.bincount(site * width + column, amount, sites * width).astype(np.float64)
        return summed.reshape(sites, width)

    live = np.cumsum(sums(first, lives.charge) - sums(last, lives.charge), axis=1)[:, :-1]
    return SiteTable(live.astype(np.int64), sums(first, lives.charge * final)[:, :-1].astype(np.int64))


def _median_per_site(site: I64, values: I64, sites: int, bound: int) -> F64:
    """The median of the values, 0..bound, of each site's rows; the lower one of two."""
    order = np.sort(site * (bound + 1) + values)
    counts = np.bincount(site, minlength=sites)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    return (order[middle] % (bound + 1)).astype(np.float64) if len(order) else np.zeros(sites)
