"""The trend of a fleet: peaks per program and memory over days or captures, with the changes that raised them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from tb_memplugin.model.fleet import TrendBy, TrendSeries
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION, AnswerJson, Asked, bounded
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import FLEETS, Choice
from tb_memplugin.questions.asking.json_types import OmittedJson
from tb_memplugin.questions.asking.source import Fleets
from tb_memplugin.questions.fleet.words import rise_text
from tb_memplugin.questions.records import record


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


class TrendAnswerJson(AnswerJson):
    """Memories, then programs, the largest first; of each, the points with the largest changes and the last one."""

    series: list[TrendSeriesJson]
    omitted: NotRequired[OmittedJson]


class FleetTrendJson(TypedDict):
    """The trend over all captures, and how many files are read; without series until all are."""

    series: list[TrendSeriesJson]
    done: int
    total: int
    seconds: float
    running: bool
    problem: str


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
    answer: TrendAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "series": [{**one, "points": _largest_changes(one["points"], asked.top)} for one in found],
        "next": asked.next(
            *(asked.question("explain", "what is live after the largest rise", point["recording"]) for point in worst)
        ),
    }
    return bounded(answer, asked.top)


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


def _largest_changes(points: Sequence[TrendPointJson], top: int | None) -> list[TrendPointJson]:
    """Return all points in order, or where these are too many, the last one and those with the largest changes."""
    last = len(points) - 1
    order = sorted(range(len(points)), key=lambda at: (at != last, -abs(points[at]["rise_bytes"])))
    return [points[at] for at in sorted(order[:top])]
