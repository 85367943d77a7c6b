"""The trend of a fleet for JSON."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.model.fleet_trend import TrendSeries
from tb_memplugin.views.shared.fleet_text import rise_text


class TrendChangeJson(TypedDict):
    """A source line whose bytes at the peak changed."""

    line: str
    bytes_before: int
    bytes_after: int


class TrendPointJson(TypedDict):
    """The peak of one day, or of one capture."""

    day: str
    capture: str
    recording: str
    """Id of the recording with this peak: the median device's, or the program's on the host where it is largest."""
    peak_bytes: int
    largest_bytes: int
    count: int
    """Number of devices; of a program, of the hosts that have it."""
    rise_bytes: int
    """Growth since the point before."""
    changes: list[TrendChangeJson]
    """Changes that raised the peak, largest first; empty without a rise of more than 1 %."""
    because: str | None
    """The cause of the rise in words; null without a rise of more than 1 %."""


class TrendSeriesJson(TypedDict):
    """The peaks of a memory or of a program, in order of time."""

    name: str
    is_program: bool
    points: list[TrendPointJson]


def series_json(series: TrendSeries) -> TrendSeriesJson:
    """Return a series for JSON."""
    rises = {rise.after: rise for rise in series.rises}
    points: list[TrendPointJson] = []
    for at, point in enumerate(series.points):
        changes = rises[at].changes if at in rises else ()
        points.append(
            {
                "day": point.day,
                "capture": point.capture,
                "recording": point.recording,
                "peak_bytes": point.peak_bytes,
                "largest_bytes": point.largest_bytes,
                "count": point.devices,
                "rise_bytes": point.peak_bytes - series.points[at - 1].peak_bytes if at else 0,
                "changes": [
                    {"line": c.text, "bytes_before": c.bytes_before, "bytes_after": c.bytes_after} for c in changes
                ],
                "because": rise_text(rises[at]) if at in rises else None,
            }
        )
    return {"name": series.name, "is_program": series.is_program, "points": points}
