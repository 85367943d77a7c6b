"""The answer about one capture of a fleet: peaks and outliers, leaks, programs, and files that cannot be read."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer, OtherProgram, host_ranges
from tb_memplugin.model.fleet import Device, Fleet, KnownCapture
from tb_memplugin.questions.fleet.devices import FleetDeviceJson, device_json, known
from tb_memplugin.questions.fleet.words import (
    apart_texts,
    cause_text,
    faults_text,
    leak_text,
    ordered,
    other_program_text,
    program_difference_text,
    series_text,
)
from tb_memplugin.questions.records import record


class SessionJson(TypedDict):
    """A folder of profiles that belongs to a capture."""

    name: str
    began: float | None
    """Seconds since 1970 by the session's name; null where that is no date."""
    hosts: int


class FileSeriesJson(TypedDict):
    """Files whose names differ in numbers only, with the same devices."""

    host: str
    """Their name with `*` for the numbers that differ."""
    files: int
    one_process: bool
    """False: each file is a host."""
    text: str


class SiteCauseJson(TypedDict):
    """A site whose bytes differ from those of the median device."""

    site: str
    bytes: int
    usual_bytes: int
    hosts: int
    """Number of hosts that have the site among their largest."""
    text: str


class FarDeviceJson(FleetDeviceJson):
    """A device with the reasons for its distance from the median device."""

    causes: list[SiteCauseJson]


class DevicesApartJson(TypedDict):
    """Devices of one name that are far from the median on most hosts. They are compared with each other."""

    device: str
    median_bytes: int
    text: str


class FleetMemoryJson(TypedDict):
    """Peaks of the devices of one memory."""

    memory: str
    median_bytes: int
    p95_bytes: int
    smallest_bytes: int
    largest_bytes: int
    spread: float
    """The largest minus the smallest peak, relative to the median."""
    worst: FarDeviceJson
    outliers: list[FarDeviceJson]
    """Farthest from the median first."""
    apart: list[DevicesApartJson]
    devices: list[FleetDeviceJson]
    """In natural order of hosts."""


class FleetLeakJson(TypedDict):
    """A site that leaks."""

    site: str
    bytes: int
    """In each step, where it is the most."""
    unit: str
    hosts: list[str]
    devices: int
    recording: str
    """Id of the recording of the device where it is the most."""
    text: str


class FleetProgramJson(TypedDict):
    """A program, recognized by its content."""

    module: str
    fingerprint: str
    hosts: int
    peak_bytes: int | None
    reserved_bytes: int | None
    problem: str | None
    """The reason why it cannot be read."""


class OtherProgramJson(TypedDict):
    """A host whose program of a module differs from that of most hosts."""

    host: str
    module: str
    fingerprint: str | None
    """Null where the host has no program of the module."""
    reserved_bytes: int | None
    usual_reserved_bytes: int | None
    """Of the program that most hosts have."""
    recording: str | None
    """Id of the host's program; null where it has none."""
    usual_recording: str
    """Id of the program that most hosts have, on one of them."""
    difference: str
    """The difference in words."""
    text: str
    """Host, module and difference in words."""


class FileProblemJson(TypedDict):
    """A file that cannot be read, or not completely."""

    host: str
    file: str
    text: str


class HostRangeJson(TypedDict):
    """Hosts whose numbers follow each other."""

    first: str
    last: str
    count: int


class FleetCaptureJson(TypedDict):
    """One capture: a file for each host, of one session or several."""

    name: str
    sessions: list[SessionJson]
    series: list[FileSeriesJson]
    hosts: int
    missing: list[str]
    """Hosts without a file, by the gaps in numbered names."""
    missing_ranges: list[HostRangeJson]
    """The same, as ranges of numbers."""
    memories: list[FleetMemoryJson]
    leaks: list[FleetLeakJson]
    programs: list[FleetProgramJson]
    other_programs: list[OtherProgramJson]
    problems: list[FileProblemJson]


class LeftOutCaptureJson(TypedDict):
    """A capture that is not read, and its known faults."""

    name: str
    began: float
    """Seconds since 1970."""
    hosts: int
    files: int
    known_files: int
    """Files that have been read before; outliers and other programs are known if all have."""
    missing: list[str]
    problems: list[FileProblemJson]
    outliers: list[str]
    """Devices, with their hosts."""
    leaks: list[str]
    """Hosts."""
    other_programs: list[str]
    """Hosts."""
    text: str
    """The known faults in words; empty without any."""


def capture_json(fleet: Fleet, devices: bool = True) -> FleetCaptureJson:
    """Return the answer about one capture. Without `devices`, only the outliers and the worst ones are listed."""
    return answer_json(FleetAnswer(fleet), devices)


def answer_json(answer: FleetAnswer, devices: bool = True) -> FleetCaptureJson:
    """Return the answer about one capture from findings that the caller uses too, so that they are computed once."""
    fleet = answer.fleet
    return record(
        FleetCaptureJson,
        fleet,
        series=[record(FileSeriesJson, s, one_process=bool(s.evidence), text=series_text(s)) for s in fleet.series],
        hosts=len(fleet.hosts),
        missing_ranges=[{"first": a, "last": b, "count": count} for a, b, count in host_ranges(fleet.missing)],
        memories=[_memory(memory, len(fleet.hosts), devices) for memory in answer.memories],
        leaks=[
            record(
                FleetLeakJson,
                leak,
                devices=len(leak.devices),
                recording=leak.fastest.recording_id,
                text=leak_text(leak, fleet),
            )
            for leak in answer.leaks
        ],
        programs=[
            record(
                FleetProgramJson,
                program.use,
                hosts=len(program.hosts),
                peak_bytes=known(program.use.peak_bytes),
                reserved_bytes=known(program.use.reserved_bytes),
                problem=program.use.problem or None,
            )
            for program in answer.programs
        ],
        other_programs=[_other_program(other) for other in answer.other_programs],
        problems=problems_json(answer),
    )


def left_out_json(capture: KnownCapture) -> LeftOutCaptureJson:
    """Return the known faults of a capture that is not read."""
    answer, complete = FleetAnswer(capture.fleet), capture.is_complete
    outliers = [device.name for memory in answer.memories for device in memory.peaks.outliers]
    return record(
        LeftOutCaptureJson,
        capture,
        capture.fleet,
        hosts=len(capture.hosts),
        known_files=len(capture.fleet.files),
        problems=problems_json(answer),
        outliers=outliers if complete else [],
        leaks=ordered([host for leak in answer.leaks for host in leak.hosts]),
        other_programs=ordered([other.host for other in answer.other_programs if complete]),
        text=faults_text(capture),
    )


def problems_json(answer: FleetAnswer) -> list[FileProblemJson]:
    """Return the files that cannot be read, or not completely."""
    return [{"host": file.host, "file": file.path, "text": file.problem} for file in answer.problems]


def _other_program(other: OtherProgram) -> OtherProgramJson:
    return record(
        OtherProgramJson,
        other,
        fingerprint=other.use.fingerprint if other.use else None,
        reserved_bytes=known(other.use.reserved_bytes) if other.use else None,
        usual_reserved_bytes=known(other.usual.use.reserved_bytes),
        recording=other.recording or None,
        usual_recording=other.usual.recording,
        difference=program_difference_text(other),
        text=other_program_text(other),
    )


def _memory(memory: MemoryAnswer, hosts: int, devices: bool) -> FleetMemoryJson:
    peaks = memory.peaks
    return record(
        FleetMemoryJson,
        peaks,
        worst=_far(memory, peaks.worst, hosts),
        outliers=[_far(memory, device, hosts) for device in peaks.outliers],
        apart=[
            {"device": name, "median_bytes": median, "text": text}
            for (name, median), text in zip(peaks.apart.items(), apart_texts(peaks), strict=True)
        ],
        devices=[device_json(memory, device) for device in peaks.devices if devices],
    )


def _far(memory: MemoryAnswer, device: Device, hosts: int) -> FarDeviceJson:
    causes = [
        record(SiteCauseJson, cause, site=cause.text, text=cause_text(cause, hosts)) for cause in memory.causes(device)
    ]
    return {**device_json(memory, device), "causes": causes}
