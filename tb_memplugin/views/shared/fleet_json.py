"""The answer about a fleet for JSON."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.fleet import Device, Fleet
from tb_memplugin.views.shared.fleet_text import apart_texts, cause_text, leak_text, other_program_text


class SessionJson(TypedDict):
    """A folder of profiles that belongs to a capture."""

    name: str
    began: float | None
    """Seconds since 1970 by the session's name; null where that is no date."""
    hosts: int


class SiteCauseJson(TypedDict):
    """A site whose bytes differ from those of the median device."""

    site: str
    bytes: int
    usual_bytes: int
    hosts: int
    """Number of hosts that have the site among their largest."""
    text: str


class FleetDeviceJson(TypedDict):
    """A device with its peak, and its distance from the median device."""

    host: str
    run: str
    device: str
    memory: str
    measured: bool
    """False: the peak is the plan of the host's largest program."""
    peak_bytes: int
    capacity_bytes: int | None
    from_median_bytes: int
    growth: str | None
    """Site that leaks fastest."""
    growth_bytes: int | None
    """Bytes that it adds in each step."""


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
    text: str


class FileProblemJson(TypedDict):
    """A file that cannot be read, or not completely."""

    host: str
    file: str
    text: str


class FleetCaptureJson(TypedDict):
    """One capture: a file for each host, of one session or several."""

    name: str
    sessions: list[SessionJson]
    hosts: int
    missing: list[str]
    """Hosts without a file, by the gaps in numbered names."""
    memories: list[FleetMemoryJson]
    leaks: list[FleetLeakJson]
    programs: list[FleetProgramJson]
    other_programs: list[OtherProgramJson]
    problems: list[FileProblemJson]


class FleetJson(TypedDict):
    """The captures of logdirs, newest first."""

    rule: str
    """The rule by which sessions are joined, as a sentence."""
    tolerance_seconds: float
    captures: list[FleetCaptureJson]


def capture_json(fleet: Fleet, devices: bool = True) -> FleetCaptureJson:
    """Return the answer about one capture. Without `devices`, only the outliers and the worst ones are listed."""
    answer = FleetAnswer(fleet)
    return {
        "name": fleet.name,
        "sessions": [{"name": s.name, "began": s.began, "hosts": s.hosts} for s in fleet.sessions],
        "hosts": len(fleet.hosts),
        "missing": list(fleet.missing),
        "memories": [_memory(memory, len(fleet.hosts), devices) for memory in answer.memories],
        "leaks": [
            {
                "site": leak.site,
                "bytes": leak.bytes,
                "unit": leak.unit,
                "hosts": list(leak.hosts),
                "devices": len(leak.devices),
                "text": leak_text(leak, fleet),
            }
            for leak in answer.leaks
        ],
        "programs": [
            {
                "module": program.use.module,
                "fingerprint": program.use.fingerprint,
                "hosts": len(program.hosts),
                "peak_bytes": known(program.use.peak_bytes),
                "reserved_bytes": known(program.use.reserved_bytes),
                "problem": program.use.problem or None,
            }
            for program in answer.programs
        ],
        "other_programs": [
            {
                "host": other.host,
                "module": other.module,
                "fingerprint": other.use.fingerprint if other.use else None,
                "text": other_program_text(other),
            }
            for other in answer.other_programs
        ],
        "problems": [{"host": file.host, "file": file.path, "text": file.problem} for file in answer.problems],
    }


def known(size: int) -> int | None:
    """Return a size, None for -1."""
    return size if size >= 0 else None


def _memory(memory: MemoryAnswer, hosts: int, devices: bool) -> FleetMemoryJson:
    peaks = memory.peaks
    return {
        "memory": peaks.memory,
        "median_bytes": peaks.median,
        "p95_bytes": peaks.p95,
        "smallest_bytes": peaks.smallest,
        "largest_bytes": peaks.largest,
        "spread": peaks.spread,
        "worst": _far(memory, peaks.worst, hosts),
        "outliers": [_far(memory, device, hosts) for device in peaks.outliers],
        "apart": [
            {"device": name, "median_bytes": median, "text": text}
            for (name, median), text in zip(peaks.apart.items(), apart_texts(peaks), strict=True)
        ],
        "devices": [_device(memory, device) for device in peaks.devices if devices],
    }


def _far(memory: MemoryAnswer, device: Device, hosts: int) -> FarDeviceJson:
    causes: list[SiteCauseJson] = [
        {
            "site": cause.text,
            "bytes": cause.bytes,
            "usual_bytes": cause.usual_bytes,
            "hosts": cause.hosts,
            "text": cause_text(cause, hosts),
        }
        for cause in memory.causes(device)
    ]
    return {**_device(memory, device), "causes": causes}


def _device(memory: MemoryAnswer, device: Device) -> FleetDeviceJson:
    found = device.summary
    return {
        "host": device.host,
        "run": device.run,
        "device": found.device,
        "memory": found.memory,
        "measured": found.measured,
        "peak_bytes": found.peak_bytes,
        "capacity_bytes": found.capacity_bytes or None,
        "from_median_bytes": memory.peaks.distance(device),
        "growth": found.growth or None,
        "growth_bytes": found.growth_bytes if found.growth else None,
    }
