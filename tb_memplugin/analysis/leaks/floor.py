"""Growth of the memory that is in use between steps, for recordings of a device's counters without allocations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.leaks.classify import theil_sen_slope
from tb_memplugin.analysis.memoize import memoize_outline
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.analysis.usage.steps import steps
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording

# A window's least bytes are near the floor if it contains whole steps, or else many samples.
MIN_WINDOWS, MAX_WINDOWS = 9, 64
SAMPLES = 30  # of a window, on average
MIN_SAMPLES_OF_STEPS = 5  # of a window, where there are too few for all windows
WARM_UP_SHARE = 4
MIN_SHARE = 0.01  # of the peak; smaller growth is noise
MIN_NOISE = 2.0  # times the distance of most windows from the line through them
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
    if len(floor) < MIN_WINDOWS:  # most samples are of a short time
        return None
    since = len(floor) // WARM_UP_SHARE
    slope = float(theil_sen_slope(floor[None], np.arange(len(floor)), since)[0])
    growth = round(slope * (len(floor) - 1 - since))
    grows = growth >= MIN_SHARE * peak(recording).bytes and _is_steady(floor[since:], slope)
    units = float(before[-1] - before[since])
    return FloorGrowth(floor, grows, growth, growth / units if units else 0.0, "step" if len(ends) else "hour")


def _is_steady(floor: I64, slope: float) -> bool:
    """Return whether windows rise along a line, to the end, and in many of them: a cache or a new phase does not."""
    count = len(floor)
    apart = floor - slope * np.arange(count)
    noise = float(np.quantile(np.abs(apart - np.median(apart)), 0.9))
    lowest_yet = np.minimum.accumulate(floor[::-1])[::-1]  # the floor never falls below this again
    rises = int((np.diff(lowest_yet) > 0).sum())
    third = count // 3
    recent = float(np.median(floor[-third:]) - np.median(floor[-2 * third : -third]))
    goes_on = 2 * recent >= slope * third
    return slope * (count - 1) >= MIN_NOISE * noise and 4 * rises >= count and goes_on
