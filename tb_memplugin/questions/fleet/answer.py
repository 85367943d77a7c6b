"""The answer about a fleet for programs: all captures, the largest devices first, and what to ask next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.model.fleet import Device, Fleet, KnownCapture
from tb_memplugin.questions.asking.asked import AnswerJson, Asked, Question, selector
from tb_memplugin.questions.fleet.capture import FleetCaptureJson, LeftOutCaptureJson, capture_json, left_out_json


class JoiningRules(TypedDict):
    """The rules by which files become captures and hosts."""

    rule: str
    """The rule by which sessions are joined, as a sentence."""
    tolerance_seconds: float
    """The value of `--join-within`."""
    series_rule: str
    """The rule by which files of one folder count as one process, as a sentence; empty if no capture has such files."""


class FleetAnswerJson(AnswerJson, JoiningRules):
    """The captures of logdirs, newest first; of each memory, the devices with the largest peaks."""

    captures: list[FleetCaptureJson]
    """The captures that were read, newest first."""
    left_out: list[LeftOutCaptureJson]
    """The captures that were not read, newest first; empty with `--all`."""


def fleet_answer(
    fleets: Sequence[Fleet], left_out: Sequence[KnownCapture], rules: JoiningRules, asked: Asked
) -> FleetAnswerJson:
    """Return captures, with the devices of the largest peaks first, and what to ask about the worst device."""
    captures = [_largest_first(capture_json(fleet)) for fleet in fleets]
    return asked.answer(
        FleetAnswerJson,
        rules,
        series_rule=rules["series_rule"] if any(capture["series"] for capture in captures) else "",
        captures=captures,
        left_out=list(map(left_out_json, left_out)),
        next=_questions(fleets[:1], asked),
    )


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
    """Return a question about a device. It reads only its host's file, where title and name select the recording."""
    part = f"|{device.summary.title}|{device.summary.device}"
    return Question("explain", {"path": device.path, "recording": selector(part)}, why)
