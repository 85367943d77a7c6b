"""The answer about one capture of a fleet: peaks and outliers, leaks, programs, and files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer, OtherProgram
from tb_memplugin.analysis.fleet.host_names import host_ranges, missing_hosts
from tb_memplugin.model.fleet import Device, Fleet, KnownCapture
from tb_memplugin.questions.asking.json_types import ProblemJson
from tb_memplugin.questions.asking.source import KnownFilesJson
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
    """The run in the logdir."""
    began: float | None
    """The time that its name states, in seconds since 1970, read as UTC; null where the name is no date."""
    hosts: int
    """The number of hosts in it."""


class FileSeriesJson(TypedDict):
    """Files whose names differ in numbers only, with the same devices."""

    host: str
    """Their name with `*` for the numbers that differ, or their process."""
    files: int
    """The number of files."""
    one_process: bool
    """True: they are one host, whose peak is the largest one; false: each file is a host."""
    text: str
    """The same in words, with the evidence."""


class SiteCauseJson(TypedDict):
    """A site whose bytes differ from those of the median device."""

    site: str
    """Source line and function, `checkpoint.py:88 device_put`."""
    bytes: int
    """Its bytes on this device, at the device's peak."""
    usual_bytes: int
    """Its bytes on the median device."""
    hosts: int
    """The number of hosts that have the site among their 16 largest."""
    text: str
    """The cause in words."""


class FarDeviceJson(FleetDeviceJson):
    """A device with the reasons for its distance from the median device."""

    causes: list[SiteCauseJson]
    """The sites that differ the most from the median device; empty where the device is near."""


class DevicesApartJson(TypedDict):
    """Devices of one name that are far from the median on most hosts. They are compared with each other."""

    device: str
    """Their name, as in `GPU_1`."""
    median_bytes: int
    """The median of their peaks."""
    text: str
    """The same in words."""


class FleetMemoryJson(TypedDict):
    """Peaks of the devices of one memory."""

    memory: str
    """Devices with equal text are compared; numbers in other names than `HBM` are `*`."""
    median_bytes: int
    """The median of the peaks."""
    p95_bytes: int
    """The peak that 95 % of the devices do not exceed."""
    smallest_bytes: int
    """The smallest peak."""
    largest_bytes: int
    """The largest peak."""
    spread: float
    """The largest minus the smallest peak, relative to the median."""
    worst: FarDeviceJson
    """The device with the largest peak."""
    outliers: list[FarDeviceJson]
    """The devices far from the median, farthest first."""
    apart: list[DevicesApartJson]
    """Devices of one name that are far from the median on most hosts."""
    devices: list[FleetDeviceJson]
    """All devices, in natural order of their hosts."""


class FleetLeakJson(TypedDict):
    """A site that leaks."""

    site: str
    """The site that leaks."""
    bytes: int
    """The bytes that it adds in each step, on the device where it adds the most."""
    unit: str
    """`step`, or the program whose runs count as steps."""
    hosts: list[str]
    """The hosts on which it leaks."""
    devices: int
    """The number of devices."""
    recording: str
    """The id of the recording of that device."""
    text: str
    """The leak in words."""


class FleetProgramJson(TypedDict):
    """A program, recognized by its content."""

    module: str
    """The module's name."""
    fingerprint: str
    """A hash of the serialized module; equal fingerprints are equal programs."""
    hosts: int
    """The number of hosts that have it."""
    peak_bytes: int | None
    """The peak of its plan; null where the file has no plan, or it cannot be read."""
    reserved_bytes: int | None
    """The bytes that it requests from a device."""
    problem: str | None
    """The reason why it cannot be read."""


class OtherProgramJson(TypedDict):
    """A host whose program of a module differs from that of most hosts."""

    host: str
    """The host."""
    module: str
    """The module of which most hosts have another program."""
    fingerprint: str | None
    """The host's own program of that module; null where it has none."""
    reserved_bytes: int | None
    """The bytes that this program requests from a device."""
    usual_reserved_bytes: int | None
    """The bytes that the program of most hosts requests."""
    recording: str | None
    """The id of the host's program; null where it has none."""
    usual_recording: str
    """The id of the program of most hosts, on one of them."""
    difference: str
    """The differences in words: the reserved bytes, and the sites with the largest difference at the peak."""
    text: str
    """Host, module and difference in words."""


class FileProblemJson(ProblemJson):
    """A file that cannot be read, or not completely."""

    host: str
    """The host."""


class HostRangeJson(TypedDict):
    """Hosts whose numbers follow each other."""

    first: str
    """The host with the smallest number."""
    last: str
    """The host with the largest number."""
    count: int
    """The number of hosts; their numbers follow each other."""


class CaptureHostsJson(TypedDict):
    """The hosts of a capture, and the files that cannot be read."""

    name: str
    """Its first session."""
    hosts: int
    """The number of hosts with a file."""
    missing: list[str] | None
    """Hosts without a file, by the gaps in numbered names; null where their names do not number them."""
    problems: list[FileProblemJson]
    """The files that cannot be read, or not completely."""


class FleetCaptureJson(CaptureHostsJson):
    """One capture: a file for each host, of one session or several."""

    sessions: list[SessionJson]
    """The folders that are joined, in order of time."""
    series: list[FileSeriesJson]
    """Files whose names differ in numbers only, with the same devices."""
    missing_ranges: list[HostRangeJson]
    """The same, as ranges of numbers."""
    memories: list[FleetMemoryJson]
    """The memory of devices first, named `HBM` whatever their allocator is called."""
    leaks: list[FleetLeakJson]
    """The sites that leak, those on the fewest hosts first."""
    programs: list[FleetProgramJson]
    """The distinct programs, those on the most hosts first."""
    other_programs: list[OtherProgramJson]
    """The hosts that lack a program that most hosts have."""


class LeftOutCaptureJson(CaptureHostsJson, KnownFilesJson):
    """A capture that is not read, and its known faults."""

    outliers: list[str]
    """The devices far from the median, with their hosts."""
    leaks: list[str]
    """The hosts with a leak."""
    other_programs: list[str]
    """The hosts that lack a program that most hosts have."""
    text: str
    """The faults in words; empty where none is known."""


def capture_json(answer: FleetAnswer, devices: bool = True) -> FleetCaptureJson:
    """Return the answer about one capture, of each memory the largest peaks first.

    Without `devices`, only the outliers and the worst ones are listed.
    """
    fleet = answer.fleet
    return record(
        FleetCaptureJson,
        fleet,
        series=[record(FileSeriesJson, s, one_process=bool(s.evidence), text=series_text(s)) for s in fleet.series],
        hosts=len(fleet.hosts),
        missing=missing_hosts(fleet.hosts),
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


def without_devices(fleets: Sequence[Fleet]) -> list[FleetCaptureJson]:
    """Return the answers about captures without lists of their devices, for the metadata of an export."""
    return [capture_json(FleetAnswer(fleet), devices=False) for fleet in fleets]


def left_out_json(capture: KnownCapture) -> LeftOutCaptureJson:
    """Return the known faults of a capture that is not read."""
    answer, complete = FleetAnswer(capture.fleet), capture.is_complete
    outliers = [device.name for memory in answer.memories for device in memory.peaks.outliers]
    return record(
        LeftOutCaptureJson,
        capture,
        capture.fleet,
        hosts=len(capture.hosts),
        missing=missing_hosts(capture.hosts),
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
    largest_first = sorted(peaks.devices if devices else (), key=lambda device: -device.summary.peak_bytes)
    return record(
        FleetMemoryJson,
        peaks,
        worst=_far(memory, peaks.worst, hosts),
        outliers=[_far(memory, device, hosts) for device in peaks.outliers],
        apart=[
            {"device": name, "median_bytes": median, "text": text}
            for (name, median), text in zip(peaks.apart.items(), apart_texts(peaks), strict=True)
        ],
        devices=[device_json(memory, device) for device in largest_first],
    )


def _far(memory: MemoryAnswer, device: Device, hosts: int) -> FarDeviceJson:
    causes = [
        record(SiteCauseJson, cause, site=cause.text, text=cause_text(cause, hosts)) for cause in memory.causes(device)
    ]
    return {**device_json(memory, device), "causes": causes}
