"""Growth of the memory that is in use between steps, for recordings of a device's counters without allocations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.leaks.classify import SiteTable, Verdict, classify, theil_sen_slope
from tb_memplugin.analysis.memoize import memoize_outline
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.analysis.usage.steps import steps
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording

MAX_WINDOWS = 64
MIN_WINDOWS = 9  # fewer may rise by chance: see classify
WINDOW_POSITIONS = 8  # on average, so that one of them is near the floor
WARM_UP_SHARE = 4
MIN_SHARE = 0.01  # of the peak; smaller growth is noise
HOUR_NS = 3600 * 10**9


class FloorGrowth(NamedTuple):
    """The least bytes in use in windows of time, each with whole steps where steps are marked."""

    floor: I64  # bytes, per window
    verdict: Verdict
    growth: int  # bytes, after the warm-up
    bytes_per_unit: float
    unit: str  # "step", or "hour" where no steps are marked


@memoize_outline
def floor_growth(recording: Recording) -> FloorGrowth | None:
    """Measure the growth of the floor; None where the recording has too few samples or steps."""
    clock, live, when = recording.clock, usage(recording).live, steps(recording)
    ends = when.position[when.position >= 0] if when.marked else np.empty(0, np.int64)
    count = min(MAX_WINDOWS, len(live) // WINDOW_POSITIONS, len(ends) if len(ends) else MAX_WINDOWS)
    if clock is None or count < MIN_WINDOWS:
        return None
    if len(ends):
        chosen = np.linspace(0, len(ends), count + 1).astype(np.int64)[:-1]
        begins = np.r_[0, ends[chosen[1:] - 1] + 1]
        units = len(ends) / count
    else:
        begins = np.searchsorted(clock, np.linspace(clock[0], clock[-1], count + 1)[:-1])
        units = (clock[-1] - clock[0]) / count / HOUR_NS
    begins = np.unique(begins[begins < len(live)])
    floor = np.minimum.reduceat(live, begins)
    since = len(floor) // WARM_UP_SHARE
    lowest_yet = np.minimum.accumulate(floor[::-1])[::-1]  # the floor never falls below this again
    staying = np.diff(lowest_yet, prepend=lowest_yet[:1])
    verdict, _, _ = classify(SiteTable(floor[None], staying[None]), since, np.zeros(1))
    growth = int(lowest_yet[-1] - lowest_yet[since])
    slope = float(theil_sen_slope(floor[None], np.arange(len(floor)), since)[0])
    found = Verdict(int(verdict[0]))
    if found is Verdict.LEAK and growth < MIN_SHARE * peak(recording).bytes:
        found = Verdict.STEADY
    return FloorGrowth(floor, found, growth, slope / units if units else 0.0, "step" if len(ends) else "hour")
