"""The devices of many hosts: peaks, outliers with their causes, missing hosts, and the trend over days."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.arrays import F64
from tb_memplugin.model.fleet import Device, Fleet
from tb_memplugin.model.fleet_trend import TrendBy
from tb_memplugin.model.text import Text
from tb_memplugin.natural_order import natural_key
from tb_memplugin.views.endpoints.endpoint import endpoint
from tb_memplugin.views.endpoints.inputs import SOURCE, Choice, FreeText
from tb_memplugin.views.endpoints.source import CaptureName, FleetReading, Source
from tb_memplugin.views.shared.fleet_json import FleetCaptureJson, answer_json
from tb_memplugin.views.shared.fleet_text import heading_text, joined_text, median_text, outlier_text, worst_parts
from tb_memplugin.views.shared.fleet_trend_json import TrendSeriesJson, series_json
from tb_memplugin.views.shared.payload import Table, encode


class CaptureNameJson(TypedDict):
    """A capture that can be chosen."""

    name: str
    began: float
    """Seconds since 1970."""
    sessions: int
    hosts: int
    files: int
    known_files: int
    """Files that have been read before; outliers and other programs are known if all have."""
    faults: str
    """The known faults, in words; empty without any."""


class MemoryTextJson(TypedDict):
    """The lines of `tb-memplugin fleet` about one memory."""

    worst: list[str]
    """The worst device, its peak, and its distance from the median."""
    median: str
    """Median, p95, spread and outliers; empty for a single device."""


class FleetMetaJson(TypedDict):
    """The answer of api/fleet beside its tables of devices and hosts. Ask again while it is `running`."""

    captures: list[CaptureNameJson]
    """All captures, newest first."""
    rule: str
    """The rule by which sessions are joined, as a sentence."""
    series_rule: str
    """The rule by which files are one process, as a sentence."""
    done: int
    """Files that are read."""
    total: int
    seconds: float
    running: bool
    problem: str
    """The reason why the reading ended without an answer; else empty."""
    capture: FleetCaptureJson | None
    """The capture, without the list of its devices; null until the first files are read."""
    heading: str
    """Hosts, devices, programs, and what is missing, as in the first line of `tb-memplugin fleet`."""
    joined: str
    """The number of joined sessions with the rule; empty for a single one."""
    texts: dict[str, MemoryTextJson]
    """By memory."""
    typical: dict[str, str]
    """By memory: the recording's id of the median device."""


class FleetTrendJson(TypedDict):
    """The trend over all captures, and how many files are read; without series until all are."""

    series: list[TrendSeriesJson]
    done: int
    total: int
    seconds: float
    running: bool
    problem: str


@endpoint("fleet", SOURCE, FreeText("capture", ""), live=True)
def fleet(source: Source, capture: str) -> bytes:
    """Return what has been read of a capture, of the newest without a name; the first request starts reading it.

    The name may be that of any of its sessions. The table `devices` has a row for each device, and `hosts` for each
    host, in natural order of hosts. Ask again while `running`.
    """
    reading = source.fleet(capture)
    found = reading.fleet or Fleet("", (), ())
    answer = FleetAnswer(found)
    meta: FleetMetaJson = {
        "captures": list(map(_capture, reading.captures)),
        "rule": reading.rule,
        "series_rule": reading.series_rule,
        "done": reading.done,
        "total": reading.total,
        "seconds": reading.seconds,
        "running": reading.is_running,
        "problem": reading.problem,
        "capture": answer_json(answer, devices=False) if reading.fleet else None,
        "heading": heading_text(answer),
        "joined": joined_text(found, reading.rule),
        "texts": {
            memory.peaks.memory: {"worst": worst_parts(memory), "median": median_text(memory)}
            for memory in answer.memories
        },
        "typical": {memory.peaks.memory: memory.peaks.typical.recording_id for memory in answer.memories},
    }
    return encode(meta, {"devices": _devices(answer), "hosts": _hosts(reading, found)})


@endpoint("fleet_trend", SOURCE, Choice("by", TrendBy), live=True)
def fleet_trend(source: Source, by: TrendBy) -> FleetTrendJson:
    """Return peaks per program and memory over time, with the changes that raised them. Ask again while `running`."""
    reading = source.fleet_trend(by)
    return {
        "series": [series_json(series) for series in reading.series],
        "done": reading.done,
        "total": reading.total,
        "seconds": reading.seconds,
        "running": reading.is_running,
        "problem": reading.problem,
    }


def _capture(name: CaptureName) -> CaptureNameJson:
    return {
        "name": name.name,
        "began": name.began,
        "sessions": name.sessions,
        "hosts": name.hosts,
        "files": name.files,
        "known_files": name.known_files,
        "faults": name.faults,
    }


def _devices(answer: FleetAnswer) -> Table:
    """Return the devices as columns. 0 is an unknown capacity."""
    memories = {memory.peaks.memory: memory.peaks for memory in answer.memories}
    outliers = {device.recording_id for peaks in memories.values() for device in peaks.outliers}
    causes = {id: text for memory in answer.memories for id, text in _causes(memory, len(answer.fleet.hosts)).items()}
    devices = answer.fleet.devices

    def sizes(values: list[int]) -> F64:
        return np.array(values, dtype=np.float64)

    def distance(device: Device) -> int:
        return memories[device.summary.memory].distance(device)

    return {
        "id": Text.of([device.recording_id for device in devices]),
        "host": Text.of([device.host for device in devices]),
        "run": Text.of([device.run for device in devices]),
        "device": Text.of([device.summary.device for device in devices]),
        "memory": Text.of([device.summary.memory for device in devices]),
        "title": Text.of([device.summary.title for device in devices]),
        "peak": sizes([device.summary.peak_bytes for device in devices]),
        "capacity": sizes([device.summary.capacity_bytes for device in devices]),
        "from_median": sizes([distance(device) for device in devices]),
        "cause": Text.of([causes.get(device.recording_id, "") for device in devices]),
        "growth": Text.of([device.summary.growth for device in devices]),
        "growth_unit": Text.of([device.summary.growth_unit for device in devices]),
        "growth_bytes": sizes([device.summary.growth_bytes for device in devices]),
        "measured": np.array([device.summary.measured for device in devices], dtype=np.uint8),
        "outlier": np.array([device.recording_id in outliers for device in devices], dtype=np.uint8),
    }


def _causes(memory: MemoryAnswer, hosts: int) -> dict[str, str]:
    """Return the first cause of each outlier and of the worst device, by the recording's id."""
    far = [device for device in (memory.peaks.worst, *memory.peaks.outliers) if memory.causes(device)]
    return {device.recording_id: outlier_text(memory, device, hosts) for device in far}


def _hosts(reading: FleetReading, fleet: Fleet) -> Table:
    """Return all hosts: `read`, `waiting` for it, `missing`, or `unreadable` with the reason."""
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
