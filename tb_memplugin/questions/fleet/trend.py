"""The trend of a fleet: peaks per program and memory over days or captures, with the changes that raised them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from tb_memplugin.model.fleet import TrendSeries
from tb_memplugin.model.kinds import TrendBy
from tb_memplugin.questions.asking.asked import AnswerJson, Asked, fewer
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import FLEETS, Choice
from tb_memplugin.questions.asking.source import Fleets, ReadingJson
from tb_memplugin.questions.fleet.words import rise_text
from tb_memplugin.questions.records import record


class TrendChangeJson(TypedDict):
    """A source line whose bytes at the peak changed."""

    line: str
    """The source line."""
    bytes_before: int
    """Its bytes at the peak of the point before."""
    bytes_after: int
    """Its bytes at the peak of this point."""


class TrendPointJson(TypedDict):
    """The peak of one day, or of one capture."""

    day: str
    """The date, as the session's name states it."""
    capture: str
    """The capture; for a day with several, the one with the largest peak."""
    recording: str
    """The id of the recording with this peak: the median device, or the program on the host where it is largest."""
    peak_bytes: int
    """The peak of the median device, or of the program."""
    largest_bytes: int
    """The peak of the worst device, or the program's reserved bytes."""
    count: int
    """The number of devices, or of hosts that have the program."""
    rise_bytes: int
    """The peak minus the peak of the point before."""
    changes: list[TrendChangeJson]
    """For a rise of more than 1 %: the lines that raised the peak, by comparison with the point before."""
    because: str | None
    """For a rise of more than 1 %: the changes in words, or the reason why they are unknown."""


class TrendSeriesJson(TypedDict):
    """The peaks of a memory or of a program, in order of time."""

    name: str
    """The memory or the module."""
    is_program: bool
    """True for a program."""
    points: list[TrendPointJson]
    """The days with a capture, in order; with `--by capture` the captures."""


class TrendAnswerJson(AnswerJson):
    """Memories, then programs, the largest first; of each, the points with the largest changes and the last one."""

    series: list[TrendSeriesJson]
    """Memories, then programs, the largest first."""


class FleetTrendJson(ReadingJson):
    """The trend over all captures, and how many files are read; without series until all are."""

    series: list[TrendSeriesJson]


@endpoint("fleet_trend", FLEETS, Choice("by", TrendBy), live=True)
def fleet_trend(fleets: Fleets, by: TrendBy) -> FleetTrendJson:
    """Return peaks per program and memory over time, with the changes that raised them. Ask again while `running`."""
    reading = fleets.trend(by)
    return record(FleetTrendJson, reading, series=list(map(series_json, reading.series)), running=reading.is_running)


def trend_answer(series: Sequence[TrendSeries], asked: Asked) -> TrendAnswerJson:
    """Return peaks over time, and the further question about the largest rise."""
    found = list(map(series_json, series))
    rises = [point for one in found[:1] for point in one["points"] if point["because"]]
    worst = sorted(rises, key=lambda point: -point["rise_bytes"])[:1]
    return asked.answer(
        TrendAnswerJson,
        series=[_short(one, fewer(asked.top)) for one in found],
        next=[asked.question("explain", "what is live after the largest rise", point["recording"]) for point in worst],
    )


def series_json(series: TrendSeries) -> TrendSeriesJson:
    """Return a series for JSON."""
    rises = {rise.after: rise for rise in series.rises}
    points = [
        record(
            TrendPointJson,
            point,
            count=point.devices,
            rise_bytes=point.peak_bytes - series.points[at - 1].peak_bytes if at else 0,
            changes=[record(TrendChangeJson, c, line=c.text) for c in (rises[at].changes if at in rises else ())],
            because=rise_text(rises[at]) if at in rises else None,
        )
        for at, point in enumerate(series.points)
    ]
    return record(TrendSeriesJson, series, points=points)


def _short(series: TrendSeriesJson, top: int | None) -> dict[str, Any]:
    """Return a series with its points in order; of more than `top`, those with the largest changes, and the last."""
    points = series["points"]
    last = len(points) - 1
    order = sorted(range(len(points)), key=lambda at: (at != last, -abs(points[at]["rise_bytes"])))
    kept = [points[at] for at in sorted(order[:top])]
    return {**series, "points": kept, "omitted": {"points": len(points) - len(kept)}}
