"""Classification of allocation sites by their live bytes at the end of each step, and growth of a device's counters.

Two tests together distinguish a leak from a cache, a warm-up and a sawtooth: bytes allocated in step after step stay
until the end, and the live bytes at the end of each step keep rising. Neither is enough alone: a full pool with random
replacement keeps entries of every age, and noise may rise for a while.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize_outline
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.analysis.usage.steps import steps
from tb_memplugin.model.arrays import F64, I64, U8, Mask
from tb_memplugin.model.recording import Recording

MIN_RISES = 8  # nine random numbers are in rising order once in 360,000 times
MAX_SLOPE_POINTS = 33  # 528 pairs of steps per site; more pairs do not improve the median slope


class Verdict(IntEnum):
    """The kind of growth of a site, worst first."""

    LEAK = 0  # grows to the end without a sign of stopping
    CACHE = 1  # grew after the warm-up, and stopped
    SAWTOOTH = 2  # grows for some steps, is freed at once, and grows again
    KEPT = 3  # each allocation is freed one step after its own
    WARM_UP = 4  # all live bytes were allocated in the first steps
    STEADY = 5


class SiteTable(NamedTuple):
    """Bytes of each site (rows) at the end of each step (columns)."""

    live: I64
    staying: I64  # those allocated since the previous step's end that are still live at the end of the last step


def classify(table: SiteTable, since: int, survived: F64) -> tuple[U8, I64, F64]:
    """Return verdict, evidence (steps) and confidence (0 to 1) of each site, from its live bytes since step `since`."""
    live = table.live[:, since:]
    span = live.shape[1] - 1
    change = np.diff(live, axis=1)
    floor = np.minimum.accumulate(live[:, ::-1], axis=1)[:, ::-1]  # live bytes never fall below this again
    growth = floor[:, -1] - floor[:, 0]
    fell = (live - floor).max(axis=1)
    goes_on = 6 * (floor[:, -1] - floor[:, -1 - span // 3]) >= growth  # in the last third, at half its rate or more

    grew, gap, idle = _occurrences(table.staying[:, since + 1 :] > 0)
    # Bytes stay if no gap without staying bytes is longer than a third of the steps, or the last than twice any other.
    stays = (3 * gap <= span) & (3 * idle <= span) & (idle < 2 * gap)
    # Each step may replace an allocation by a larger one, so that no old bytes stay.
    replaced = (change > 0).all(axis=1) & (span >= MIN_RISES)
    leak = (stays & (growth > fell) & goes_on) | replaced

    falls, between, _ = _occurrences(change < 0)
    height = live.max(axis=1) - live.min(axis=1)
    deep = ((change >= 0) | (-2 * change >= height[:, None])).all(axis=1) & (4 * height >= live.max(axis=1))
    rises = (change > 0).sum(axis=1)
    # In a sawtooth, all falls are deep, at least as rare as rises, and if there are several, regular.
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
    # Each step of evidence halves the doubt. Bytes that a leak freed meanwhile reduce its confidence.
    confidence = 1 - 0.5 ** np.minimum(evidence, 50)
    confidence = np.where(leak, confidence * growth / np.maximum(growth + fell, 1), confidence)
    return verdict, evidence.astype(np.int64), confidence


def _occurrences(happens: Mask) -> tuple[I64, I64, I64]:
    """Return per row of a table of steps: the number of occurrences, the longest gap, and the steps since the last.

    The first gap is counted from the step before the table.
    """
    step = np.arange(1, happens.shape[1] + 1)
    latest = np.maximum.accumulate(np.where(happens, step, 0), axis=1)
    ways = np.diff(latest, axis=1, prepend=0)
    return happens.sum(axis=1), ways.max(axis=1), happens.shape[1] - latest[:, -1]


def theil_sen_slope(live: I64, sampled_steps: I64, since: int) -> F64:
    """Return bytes per step: the median slope over all pairs of at most MAX_SLOPE_POINTS steps."""
    points = np.unique(np.linspace(since, len(sampled_steps) - 1, MAX_SLOPE_POINTS).round().astype(np.int64))
    early, late = np.triu_indices(len(points), 1)
    chosen, step = live[:, points], sampled_steps[points]
    slopes = (chosen[:, late] - chosen[:, early]) / (step[late] - step[early])
    return np.median(slopes, axis=1)


# The least bytes in a window are near the floor if the window contains whole steps, or else many samples.
MIN_WINDOWS, MAX_WINDOWS = 9, 64
SAMPLES = 30  # samples of a window, on average
MIN_SAMPLES_OF_STEPS = 5  # samples of a window of steps, if there are too few samples for all windows
WARM_UP_SHARE = 4
MIN_SHARE = 0.01  # a choice: growth below this share of the peak is not reported
# Growth must exceed the distance of most windows from the line by this factor. Of 3,000 random series of 9 windows
# without growth, 2.3 % then seem to grow, of 64 windows none; with 1, 8.8 % of 9 windows, and with 3, 0.6 %.
MIN_NOISE = 2.0
HOUR_NS = 3600 * 10**9


class FloorGrowth(NamedTuple):
    """The least bytes in use in windows of time, each with whole steps where steps are marked."""

    floor: I64  # bytes, per window
    grows: bool  # after the warm-up, up to the end
    growth: int  # bytes, after the warm-up
    bytes_per_unit: float
    unit: str  # "step", or "hour" where no steps are marked


@memoize_outline
def floor_growth(recording: Recording) -> FloorGrowth | None:
    """Measure the growth of the floor; None where the recording has too few samples or steps."""
    clock, live, when = recording.clock, usage(recording).live, steps(recording)
    ended = when.position >= 0
    ends = when.position[ended] if when.marked else np.empty(0, np.int64)
    least, most = (MIN_SAMPLES_OF_STEPS, len(ends)) if len(ends) else (SAMPLES, MAX_WINDOWS)
    if clock is None or len(live) < MIN_WINDOWS * least or most < MIN_WINDOWS:
        return None
    count = min(MAX_WINDOWS, most, max(len(live) // SAMPLES, MIN_WINDOWS))
    if len(ends):
        chosen = np.linspace(0, len(ends), count + 1).astype(np.int64)[:-1]
        begins = np.r_[0, ends[chosen[1:] - 1] + 1]
        before = np.r_[0.0, np.cumsum(np.ones(len(ends)) if when.counts is None else when.counts[ended])][chosen]
    else:
        begins = np.searchsorted(clock, np.linspace(clock[0], clock[-1], count + 1)[:-1])
        before = (clock[np.minimum(begins, len(clock) - 1)] - clock[0]) / HOUR_NS
    begins, first = np.unique(begins[begins < len(live)], return_index=True)
    before = before[first]
    floor = np.minimum.reduceat(live, begins)
    if len(floor) < MIN_WINDOWS:  # most samples are from a short time
        return None
    since = len(floor) // WARM_UP_SHARE
    slope = float(theil_sen_slope(floor[None], np.arange(len(floor)), since)[0])
    growth = round(slope * (len(floor) - 1 - since))
    grows = growth >= MIN_SHARE * peak(recording).bytes and _is_steady(floor[since:], slope)
    units = float(before[-1] - before[since])
    return FloorGrowth(floor, grows, growth, growth / units if units else 0.0, "step" if len(ends) else "hour")


def _is_steady(floor: I64, slope: float) -> bool:
    """Return whether many windows rise, along a line and to the end, unlike in a cache or a new phase."""
    count = len(floor)
    apart = floor - slope * np.arange(count)
    noise = float(np.quantile(np.abs(apart - np.median(apart)), 0.9))
    lowest_yet = np.minimum.accumulate(floor[::-1])[::-1]  # the floor never falls below this again
    rises = int((np.diff(lowest_yet) > 0).sum())
    third = count // 3
    recent = float(np.median(floor[-third:]) - np.median(floor[-2 * third : -third]))
    goes_on = 2 * recent >= slope * third
    return slope * (count - 1) >= MIN_NOISE * noise and 4 * rises >= count and goes_on
