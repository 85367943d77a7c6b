"""What the bytes of a site at the end of each step say of it.

A leak is told from a cache, a warm-up and a sawtooth by two questions about each site: do bytes that it allocated in
one step after another stay until the end, and does what it holds at the end of a step keep rising? Either alone is
not enough: a full pool that replaces its entries at random keeps some of every age, and noise may rise for a while.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import F64, I64, U8, Mask

MAX_SLOPE_POINTS = 33  # 528 pairs of steps a site: the median of so many slopes is no better for having more


class Verdict(IntEnum):
    """Worst first."""

    LEAK = 0  # grows to the end, and nothing says that it will stop
    CACHE = 1  # grew after the warm-up, and has stopped
    SAWTOOTH = 2  # grows for some steps, is freed at once, and grows again
    KEPT = 3  # each allocation is freed one step after its own
    WARM_UP = 4  # what it holds was allocated in the first steps
    STEADY = 5


class SiteTable(NamedTuple):
    """Bytes of each site (rows) at the end of each step (columns)."""

    live: I64
    staying: I64  # those born since the end before that are still live at the end of the last


def classify(table: SiteTable, since: int, survived: F64) -> tuple[U8, I64, F64]:
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

    grew, gap, idle = _occurrences(table.staying[:, since + 1 :] > 0)
    # No third of the steps without bytes that stay, and none for twice as long as ever before at the end.
    stays = (3 * gap <= span) & (3 * idle <= span) & (idle < 2 * gap)
    # By a larger one each step, so that nothing old stays. Nine numbers rise by chance once in 360,000 times.
    replaced = (change > 0).all(axis=1) & (span >= 8)
    leak = (stays & (growth > fell) & goes_on) | replaced

    falls, between, _ = _occurrences(change < 0)
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


def _occurrences(happens: Mask) -> tuple[I64, I64, I64]:
    """Per row of a table of steps: on how many it happens, the longest way from one to the next, and since the last.

    The first is reached from the step before the table.
    """
    step = np.arange(1, happens.shape[1] + 1)
    latest = np.maximum.accumulate(np.where(happens, step, 0), axis=1)
    ways = np.diff(latest, axis=1, prepend=0)
    return happens.sum(axis=1), ways.max(axis=1), happens.shape[1] - latest[:, -1]


def theil_sen_slope(live: I64, looked_at: I64, since: int) -> F64:
    """Bytes per step: the median over all pairs of (at most SLOPE_POINTS) steps."""
    points = np.unique(np.linspace(since, len(looked_at) - 1, MAX_SLOPE_POINTS).round().astype(np.int64))
    early, late = np.triu_indices(len(points), 1)
    chosen, step = live[:, points], looked_at[points]
    slopes = (chosen[:, late] - chosen[:, early]) / (step[late] - step[early])
    return np.median(slopes, axis=1) if len(live) else np.empty(0)
