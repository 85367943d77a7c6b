"""The answers about a fleet: for programs, all captures with their largest devices first; for the page, one capture.

The page shows a capture while its files are read, with tables of its devices and hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.model.fleet import Device, Fleet, KnownCapture
from tb_memplugin.model.text import Text
from tb_memplugin.numbered_names import natural_key
from tb_memplugin.questions.asking.asked import AnswerJson, Asked, Question, selector
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import FLEETS, FreeText
from tb_memplugin.questions.asking.payload import Table, encode
from tb_memplugin.questions.asking.source import CaptureNameJson, FleetReading, Fleets, ReadingJson
from tb_memplugin.questions.fleet.capture import (
    FleetCaptureJson,
    LeftOutCaptureJson,
    capture_json,
    left_out_json,
)
from tb_memplugin.questions.fleet.devices import device_table
from tb_memplugin.questions.fleet.words import heading_text, joined_text, median_text, worst_parts
from tb_memplugin.questions.records import record


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
    answers = list(map(FleetAnswer, fleets))
    captures = list(map(capture_json, answers))
    return asked.answer(
        FleetAnswerJson,
        rules,
        series_rule=rules["series_rule"] if any(capture["series"] for capture in captures) else "",
        captures=captures,
        left_out=list(map(left_out_json, left_out)),
        next=_questions(answers[0], asked) if answers else (),
    )


def _questions(answer: FleetAnswer, asked: Asked) -> list[Question]:
    found = [_explain(memory.peaks.worst, "what is live on the worst device") for memory in answer.memories[:1]]
    leaking = [device for device in answer.fleet.devices if device.summary.growth]
    found += [_explain(device, "the leak, and its steps") for device in leaking[:1]]
    if answer.fleet.devices:
        found.append(asked.question("fleet", "the peaks of all captures over time", trend=True))
    return found


def _explain(device: Device, why: str) -> Question:
    """Return a question about a device. It reads only its host's file, where title and name select the recording."""
    part = f"|{device.summary.title}|{device.summary.device}"
    return Question("explain", {"path": device.path, "recording": selector(part)}, why)


class MemoryTextJson(TypedDict):
    """The lines of `tb-memplugin fleet` about one memory."""

    worst: list[str]
    """The worst device, its peak, and its distance from the median."""
    median: str
    """Median, p95, spread and outliers; empty for a single device."""


class FleetMetaJson(ReadingJson):
    """The answer of api/fleet beside its tables of devices and hosts."""

    captures: list[CaptureNameJson]
    """All captures, newest first."""
    rule: str
    """The rule by which sessions are joined, as a sentence."""
    series_rule: str
    """The rule by which files are one process, as a sentence."""
    capture: FleetCaptureJson | None
    """The capture, without the list of its devices; null until the first files are read."""
    heading: str
    """Hosts, devices, programs, and what is missing, as in the first line of `tb-memplugin fleet`."""
    joined: str
    """The number of joined sessions with the rule; empty for a single one."""
    texts: dict[str, MemoryTextJson]
    """The lines about each memory, by its name."""
    typical: dict[str, str]
    """The id of the median device's recording, by memory."""


@endpoint("fleet", FLEETS, FreeText("capture", default=""), live=True)
def fleet(fleets: Fleets, capture: str) -> bytes:
    """Return the part of a capture that has been read; the newest without a name. The first request starts reading.

    The name may be that of any of its sessions. The table `devices` has a row for each device, and `hosts` for each
    host, in natural order of hosts. Ask again while `running`.
    """
    reading = fleets.fleet(capture)
    found = reading.fleet or Fleet("", (), ())
    answer = FleetAnswer(found)
    meta = record(
        FleetMetaJson,
        reading,
        running=reading.is_running,
        capture=capture_json(answer, devices=False) if reading.fleet else None,
        heading=heading_text(answer),
        joined=joined_text(found, reading.rule),
        texts={
            memory.peaks.memory: {"worst": worst_parts(memory), "median": median_text(memory)}
            for memory in answer.memories
        },
        typical={memory.peaks.memory: memory.peaks.typical.recording_id for memory in answer.memories},
    )
    return encode(meta, {"devices": device_table(answer), "hosts": _hosts(reading, found)})


def _hosts(reading: FleetReading, fleet: Fleet) -> Table:
    """Return all hosts with their state: `read`, `waiting` to be read, `missing`, or `unreadable` with the reason."""
    problems = {file.host: file.problem for file in fleet.files if file.problem}
    states = dict.fromkeys(reading.hosts, "waiting") | dict.fromkeys(fleet.missing, "missing")
    states |= {host: "unreadable" if host in problems else "read" for host in fleet.hosts}
    states |= {device.host: "read" for device in fleet.devices}
    hosts = sorted(states, key=natural_key)
    return {
        "host": Text.of(hosts),
        "state": Text.of([states[host] for host in hosts]),
        "problem": Text.of([problems.get(host, "") for host in hosts]),
    }
