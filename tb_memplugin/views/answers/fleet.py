"""The devices of many hosts: the worst ones, and why they differ; and their peaks over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.model.fleet import Device, Fleet
from tb_memplugin.model.fleet_trend import TrendSeries
from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked, Question, selector
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.shared.fleet_json import FleetCaptureJson, FleetJson
from tb_memplugin.views.shared.fleet_trend_json import TrendPointJson, TrendSeriesJson, series_json
from tb_memplugin.views.shared.json_types import OmittedJson


class FleetAnswerJson(AnswerJson, FleetJson):
    """The captures of logdirs, newest first; of each memory, the devices with the largest peaks."""

    omitted: NotRequired[OmittedJson]


class TrendAnswerJson(AnswerJson):
    """Memories, then programs, the largest first; of each, the points with the largest changes and the last one."""

    series: list[TrendSeriesJson]
    omitted: NotRequired[OmittedJson]


def fleet_answer(fleets: Sequence[Fleet], found: FleetJson, asked: Asked) -> FleetAnswerJson:
    """Return captures, with the devices of the largest peaks first, and what to ask about the worst device."""
    answer: FleetAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "rule": found["rule"],
        "tolerance_seconds": found["tolerance_seconds"],
        "series_rule": found["series_rule"] if any(capture["series"] for capture in found["captures"]) else "",
        "captures": [_largest_first(capture) for capture in found["captures"]],
        "left_out": found["left_out"],
        "next": asked.next(*_questions(fleets[:1], asked)),
    }
    return bounded(answer, asked.top)


def _largest_first(capture: FleetCaptureJson) -> FleetCaptureJson:
    for memory in capture["memories"]:
        memory["devices"].sort(key=lambda device: -device["peak_bytes"])
    return capture


def _questions(fleets: Sequence[Fleet], asked: Asked) -> list[Question]:
    found = []
    for fleet in fleets:
        answer = FleetAnswer(fleet)
        found += [_explain(memory.peaks.worst, "what is live on the worst device") for memory in answer.memories[:1]]
        leaking = [device for device in fleet.devices if device.summary.growth]
        found += [_explain(device, "the leak, and its steps") for device in leaking[:1]]
    if len(fleets) and fleets[0].devices:
        found.append(asked.question("fleet", "the peaks of all captures over time", trend=True))
    return found


def _explain(device: Device, why: str) -> Question:
    """Ask about a device. Only its host's file is read, in which the title and the name select its recording."""
    part = f"|{device.summary.title}|{device.summary.device}"
    return Question("explain", {"path": device.path, "recording": selector(part)}, why)


def trend_answer(series: Sequence[TrendSeries], asked: Asked) -> TrendAnswerJson:
    """Return peaks over time, and what to ask about the largest rise."""
    found = [series_json(one) for one in series]
    rises = [point for one in found[:1] for point in one["points"] if point["because"]]
    worst = sorted(rises, key=lambda point: -point["rise_bytes"])[:1]
    answer: TrendAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "series": [{**one, "points": _telling(one["points"], asked.top)} for one in found],
        "next": asked.next(
            *(asked.question("explain", "what is live after the largest rise", point["recording"]) for point in worst)
        ),
    }
    return bounded(answer, asked.top)


def _telling(points: Sequence[TrendPointJson], top: int | None) -> list[TrendPointJson]:
    """Return all points in order, or where these are too many, the last one and those with the largest changes."""
    last = len(points) - 1
    order = sorted(range(len(points)), key=lambda at: (at != last, -abs(points[at]["rise_bytes"])))
    return [points[at] for at in sorted(order[:top])]
