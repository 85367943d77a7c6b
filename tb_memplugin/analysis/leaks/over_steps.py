"""Growth from step to step, by allocation site, and gradients that a PyTorch training loop retains."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.leaks.classify import MIN_RISES, SiteTable, Verdict, classify, theil_sen_slope
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.torch_roles import optimizer_steps
from tb_memplugin.analysis.usage.live_set import group_by_site
from tb_memplugin.analysis.usage.steps import Steps, steps
from tb_memplugin.model.arrays import F64, I64, U8, Mask, largest_per, sum_over_time
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording

# Compilation, autotuning and first uses end after a few steps. Later growth comes from the loop itself.
WARM_UP_SHARE, MAX_WARM_UP = 4, 10
# These bound tables of sites by steps to 32 MB each. The sites with the most bytes across steps are kept. If there are
# more steps, every second, third, ... is sampled.
MAX_SITES, MAX_STEPS = 4096, 1024


class LeakSites(NamedTuple):
    """One entry per site with live bytes at the end of any step: leaks first, then by growth."""

    row: I64  # an allocation of the site: the last that reached the end of a step
    sized: npt.NDArray[np.bool_]  # all of its allocations have the size and shape of `row`
    allocations: I64
    survived: F64  # number of step ends that its median allocation outlives
    live: I64  # bytes at the end of each sampled step: sites x len(Leaks.sampled_steps)
    bytes_per_step: F64  # after the warm-up: the Theil-Sen slope
    verdict: U8
    evidence: I64  # number of steps that support the verdict
    confidence: F64  # 0 to 1
    freed_later: F64  # share of the live bytes at the end of the last step that are freed after it


class Leaks(NamedTuple):
    steps: Steps
    warm_up: int  # steps
    sampled_steps: I64  # numbers of the steps in `sites.live`
    within_step: int  # allocations that were freed within their step
    left_out: int  # sites beyond MAX_SITES
    sites: LeakSites | None  # None if there are too few steps


class _StepLifetimes(NamedTuple):
    """Allocations made in the recording; each is live at the ends of steps first to last - 1."""

    row: I64
    first: I64
    last: I64
    charge: I64
    freed_later: I64  # bytes that are live at the end of the last step and freed before the end of the recording


@memoize
def leaks(recording: Recording) -> Leaks:
    """Measure the growth per step of every site. Allocations from before the recording are ignored.

    A runtime allocates very different arrays at one line, and the noise of large ones would hide the leak of a small
    one. So each size is a site of its own. A leak with ever new sizes shows only in the line as a whole, which is
    reported if it grows more than twice as fast as its leaking sites together.
    """
    return _measure(recording, only_leaks=False)


@memoize
def leaking_sites(recording: Recording) -> Leaks:
    """Return `leaks` with leaking sites only. The number of allocations alone excludes most sites, which saves time."""
    found = _measure(recording, only_leaks=True)
    if found.sites is None:
        return found
    leaking = found.sites.verdict == Verdict.LEAK
    return found._replace(sites=LeakSites._make(column[leaking] for column in found.sites))


def _measure(recording: Recording, only_leaks: bool) -> Leaks:
    when = steps(recording)
    if len(when.position):
        return _over_steps(recording, when, only_leaks)
    parts = equal_parts(recording, when)
    found = Leaks(when, 0, when.position, 0, 0, None) if parts is None else _over_steps(recording, parts, True)
    if parts is None or found.sites is None:
        return found
    grows = grows_throughout(recording, parts, found.sites.row, found.sites.verdict)
    per_unit = PART_UNIT / (int(parts.position[0]) + 1)
    sites = LeakSites._make(column[grows] for column in found.sites)
    return found._replace(sites=sites._replace(bytes_per_step=sites.bytes_per_step * per_unit))


def _over_steps(recording: Recording, when: Steps, only_leaks: bool) -> Leaks:
    rows, count = recording.allocations, len(when.position)
    first, last = np.searchsorted(when.position, rows.start), np.searchsorted(when.position, rows.end)
    own = np.flatnonzero((rows.start >= 0) & (rows.charge > 0) & (first < count))
    later = rows.charge * ((last == count) & (rows.end < recording.length))
    lives = _StepLifetimes(own, first[own], last[own], rows.charge[own], later[own])
    warm_up = min(max(1, count // WARM_UP_SHARE), MAX_WARM_UP)
    stride = -(-count // MAX_STEPS)
    sampled_steps = np.arange((count - 1) % stride, count, stride, dtype=np.int64)

    site, number = group_by_site(rows, own)
    place, places = group_by_site(rows, own, sized=False)
    sized, left_out = _largest_sites(lives, site, number, sampled_steps, warm_up, sized=True, only_leaks=only_leaks)
    whole, _ = _largest_sites(lives, place, places, sampled_steps, warm_up, sized=False, only_leaks=True)
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
        sampled_steps=sampled_steps,
        within_step=int((lives.first == lives.last).sum()),
        left_out=left_out,
        sites=LeakSites._make(column[order] for column in found),
    )


def _largest_sites(
    lives: _StepLifetimes, site: I64, sites: int, sampled_steps: I64, warm_up: int, *, sized: bool, only_leaks: bool
) -> tuple[LeakSites, int]:
    """Classify the MAX_SITES sites with the most bytes across steps. Return them and the number of other sites.

    `only_leaks`: return no sites that cannot be leaks.
    """
    count = int(sampled_steps[-1]) + 1
    since = int(np.searchsorted(sampled_steps, warm_up - 1))
    held = np.bincount(site, lives.charge * (lives.last - lives.first), sites)
    largest = np.argsort(-held, kind="stable")[: min(MAX_SITES, int((held > 0).sum()))]
    chosen = largest[_may_leak(lives, site, sites, sampled_steps, since)[largest]] if only_leaks else largest
    number = np.full(sites, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    own = np.flatnonzero(number[site] >= 0)
    lives, site = _StepLifetimes._make(column[own] for column in lives), number[site[own]]
    shown = np.flatnonzero(lives.last > lives.first)
    example = largest_per(site[shown], lives.row[shown], len(chosen))

    seen = _StepLifetimes._make(column[shown] for column in lives)
    table = _site_table(seen, site[shown], sampled_steps, len(chosen))
    survived = _median_per_site(site, lives.last - lives.first, len(chosen), count)
    verdict, evidence, confidence = classify(table, since, survived)
    freed = np.bincount(site[shown], seen.freed_later, len(chosen)) / np.maximum(table.live[:, -1], 1)
    found = LeakSites(
        row=example,
        sized=np.full(len(chosen), sized),
        allocations=np.bincount(site, minlength=len(chosen)),
        survived=survived,
        live=table.live,
        bytes_per_step=theil_sen_slope(table.live, sampled_steps, since),
        verdict=verdict,
        evidence=evidence * (sampled_steps[1] - sampled_steps[0]),
        # Bytes freed after the last step may be a leak that ended with the loop, or asynchronous work.
        confidence=np.where(verdict == Verdict.LEAK, confidence * (1 - freed / 2), confidence),
        freed_later=freed,
    )
    return found, int((held > 0).sum()) - len(largest)


def _may_leak(lives: _StepLifetimes, site: I64, sites: int, sampled_steps: I64, since: int) -> Mask:
    """Mark the sites that `classify` may find to leak, by the steps after `since` in which they allocate.

    A leak has allocations of three steps that stay to the end, one in each third of the steps, or rises in each step.
    """
    span = len(sampled_steps) - 1 - since
    first, last = np.searchsorted(sampled_steps, lives.first), np.searchsorted(sampled_steps, lives.last)
    after = (first > since) & (first < last)
    staying = np.bincount(site, after & (lives.last > sampled_steps[-1]), sites)
    rising = np.bincount(site, after, sites)
    return (staying >= 3) | ((rising >= span) & (span >= MIN_RISES))


def _site_table(lives: _StepLifetimes, site: I64, sampled_steps: I64, sites: int) -> SiteTable:
    final = sampled_steps[-1] < lives.last
    first, last = np.searchsorted(sampled_steps, lives.first), np.searchsorted(sampled_steps, lives.last)
    width = len(sampled_steps) + 1

    def sums(column: I64, amount: I64) -> F64:
        summed: F64 = np.bincount(site * width + column, amount, sites * width).astype(np.float64)
        return summed.reshape(sites, width)

    live = np.cumsum(sums(first, lives.charge) - sums(last, lives.charge), axis=1)[:, :-1]
    return SiteTable(live.astype(np.int64), sums(first, lives.charge * final)[:, :-1].astype(np.int64))


def _median_per_site(site: I64, values: I64, sites: int, bound: int) -> F64:
    """Return the median of each site's values, which are 0..bound; the lower one of two middle values."""
    order = np.sort(site * (bound + 1) + values)
    counts = np.bincount(site, minlength=sites)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    return (order[middle] % (bound + 1)).astype(np.float64) if len(order) else np.zeros(sites)


class RetainedGradients(NamedTuple):
    """Bytes at the beginning of each iteration that follows an optimizer step.

    An iteration begins with the first activation that is allocated after the step.
    """

    position: I64  # where the iteration begins
    gradients: I64  # live gradients, all allocated before
    state: I64  # live optimizer state


@memoize
def retained_gradients(recording: Recording) -> RetainedGradients:
    """Measure the gradients and optimizer state that are live at the beginning of each iteration."""
    rows, role = recording.allocations, roles(recording)
    _, ends = optimizer_steps(recording)
    made = np.sort(rows.start[(role == Role.ACTIVATION) & (rows.start >= 0)])
    at = np.searchsorted(made, ends, side="right")
    begins = np.unique(made[at[at < len(made)]])
    live = list[I64]()
    for which in (role == Role.GRADIENT, role == Role.OPTIMIZER_STATE):
        # A step may begin at the end of the recording, which is position 0 where nothing is recorded.
        sums = sum_over_time(recording.length + 1, rows.start[which] + 1, rows.end[which], rows.charge[which])
        live.append(sums[begins])
    return RetainedGradients(begins, *live)


def possible_state_bytes(recording: Recording, position: int) -> int:
    """Return the bytes of older live blocks that may be optimizer state: as large as some state, or as a gradient.

    Optimizer state and gradients both have the shape of their parameter. Events do not distinguish them for blocks
    allocated before the recording, unless they match the gradients one to one, as parameters alone do.
    """
    rows, role = recording.allocations, roles(recording)
    sizes = np.unique(rows.requested[np.isin(role, (Role.OPTIMIZER_STATE, Role.GRADIENT))])
    old = (rows.start < 0) & (position < rows.end) & (role == Role.UNKNOWN)
    return int(rows.charge[old & np.isin(rows.requested, sizes)].sum())


# Growth through a recording that marks no steps is measured over equal parts of its events. A part may end anywhere in
# an iteration, so only one kind of growth is clear: many equal allocations of one site, made in nearly every part, that
# stay to the end while other memory is allocated and freed. A cache that fills once, a model that is built, the
# optimizer's state of the first step and the activations of one pass are none of these.
PARTS = 32
MIN_PART = 16  # events
PART_UNIT = 1000  # events: growth is stated per so many
EVENTS = f"{PART_UNIT:,} events"
MIN_STAYING = 128  # allocations; more than a pass of the deepest models keeps of one site, a layer at a time
MIN_SHARE_OF_PARTS = 0.75  # in which the site grows


def equal_parts(recording: Recording, why: Steps) -> Steps | None:
    """Return the ends of equal parts of the events in place of steps; None for few events. `why` there are no steps."""
    length = recording.length // PARTS
    if recording.axis is not Axis.TIME or recording.kind.is_sampled or length < MIN_PART:
        return None
    position = (np.arange(PARTS, dtype=np.int64) + 1) * length - 1
    message = f"{why.message} Growth by many equal allocations, all through the recording, is measured instead."
    return Steps(position, EVENTS, False, message)


def grows_throughout(recording: Recording, parts: Steps, row: I64, verdict: U8) -> Mask:
    """Mark the sites, each given by a row of it, that grow in nearly all parts by many equal allocations."""
    rows = recording.allocations
    born = np.flatnonzero((rows.start >= 0) & (rows.charge > 0))
    site, count = group_by_site(rows, born)
    stays = rows.end[born] >= recording.length
    part = np.minimum(np.searchsorted(parts.position, rows.start[born]), PARTS - 1)
    busy = np.bincount(np.searchsorted(parts.position, rows.end[born][~stays]), minlength=PARTS + 1)[:PARTS] > 0
    of_site = site[np.searchsorted(born, row)]
    staying = np.bincount(site, stays, count)[of_site]
    grown = np.unique(site[stays] * PARTS + part[stays])
    in_parts = np.bincount(grown // PARTS, minlength=count)[of_site]
    clear = (staying >= MIN_STAYING) & (in_parts >= MIN_SHARE_OF_PARTS * PARTS)
    clear &= busy.sum() >= MIN_SHARE_OF_PARTS * PARTS
    return np.asarray((verdict == Verdict.LEAK) & clear)
