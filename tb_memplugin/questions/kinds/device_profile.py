"""Device profiles, each of one moment: figures, headline, and growth over a series of them."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.isolate import usable
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_snapshots import Growth, find_series, growth
from tb_memplugin.analysis.usage.figure_definitions import DEVICE_PROFILE, Figure, define
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.numbered_names import natural_key
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import FILE, RECORDING, SAME_RUN
from tb_memplugin.questions.asking.json_types import FigureJson, SummaryJson
from tb_memplugin.questions.kinds.leaks import NAMES, VerdictName, sentence
from tb_memplugin.questions.recording.sites import leaking, line_text, most_from, source_text
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.records import record, records
from tb_memplugin.sizes import bytes_text, counted


class CaptureJson(TypedDict):
    """Time of a capture in ns since 1970, and the step of the training loop."""

    time_ns: int | None
    step: int | None


class KindBytesJson(TypedDict):
    """The buffers or the executables of a device."""

    kind: str
    bytes: int
    allocations: int


class DeviceJson(TypedDict):
    """One device of a profile; executables without a device count as one."""

    id: str
    memory: str
    bytes: int
    kinds: list[KindBytesJson]


class DeviceProfileJson(TypedDict):
    """Memory of one device at one moment, and the devices of the same file."""

    recording: SummaryJson
    headline: str
    figures: list[FigureJson]
    taken: CaptureJson
    devices: list[DeviceJson]


OF_DEVICE_PROFILES = InReport(lambda recording: recording.kind.has_call_graph)


@endpoint("device_profile", RECORDING, FILE, report=OF_DEVICE_PROFILES)
def device_profile(recording: Recording, file: Sequence[Recording]) -> DeviceProfileJson:
    """Return a device profile. `file` are all recordings of its file: one for each device, itself included."""
    return {
        "recording": summary(recording),
        "headline": headline(recording),
        "figures": records(FigureJson, figures(recording)),
        "taken": record(CaptureJson, recording.capture_info or CaptureInfo()),
        "devices": [
            {"id": other.id, "memory": other.memory, "bytes": peak(other).bytes, "kinds": kinds(other)}
            for other in sorted(file, key=lambda other: natural_key(other.memory))
            if other.kind.has_call_graph
        ],
    }


def kinds(recording: Recording) -> list[KindBytesJson]:
    """Return the count and the bytes of buffers and of executables."""
    rows, counts = recording.allocations, recording.allocation_counts()
    codes = np.flatnonzero(np.bincount(rows.name.codes + 1)) - 1
    return [
        {
            "kind": (rows.name.strings[code] if code >= 0 else "") or "unknown",
            "bytes": int(rows.charge[rows.name.codes == code].sum()),
            "allocations": int(counts[rows.name.codes == code].sum()),
        }
        for code in codes.tolist()
    ]


def headline(recording: Recording) -> str:
    """Return the bytes of buffers and executables, and the line with the most bytes, in sentences."""
    rows = recording.allocations
    executable = rows.role == Role.EXECUTABLE
    counts = recording.allocation_counts()
    arrays, code = int(rows.charge[~executable].sum()), int(rows.charge[executable].sum())
    number = int(counts[~executable].sum())
    text = f"{bytes_text(arrays)} in {counted(number, 'live buffer')} on {recording.memory}"
    if executable.any():
        text += f", {bytes_text(code)} in {counted(int(counts[executable].sum()), 'executable')}"
    if recording.reported is not None:
        text += f"; the device has {bytes_text(peak(recording).bytes)} in use"
    return f"{text}. {most_from(recording)}".rstrip()


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in display order."""
    rows = recording.allocations
    executable = rows.role == Role.EXECUTABLE
    known, reported = int(explained_bytes(recording)[:1].sum()), recording.reported
    in_use = int(reported.in_use[:1].sum()) if reported is not None else None
    found = [
        define(DEVICE_PROFILE, "live_peak", known),
        define(DEVICE_PROFILE, "buffers", int(rows.charge[~executable].sum())),
        define(DEVICE_PROFILE, "executables", int(rows.charge[executable].sum())),
    ]  # fmt: skip
    if in_use is not None:
        found += [
            define(DEVICE_PROFILE, "in_use", in_use),
            define(DEVICE_PROFILE, "unexplained", in_use - known),
        ]  # fmt: skip
    return [
        *found,
        define(DEVICE_PROFILE, "reported_peak", recording.reported_peak),
        define(DEVICE_PROFILE, "capacity", recording.capacity),
    ]


MAX_SITES = 100


class GrowthPointJson(TypedDict):
    """One profile of a series."""

    id: str
    title: str
    host: str
    step: int | None
    time_ns: int | None
    bytes: int


class GrowthSiteJson(TypedDict):
    """A call site; `curve` has its bytes in each profile. Without a verdict, both texts are null."""

    site: str
    verdict: VerdictName | None
    sentence: str | None
    bytes_per_profile: float
    confidence: float
    allocations: int
    curve: list[int]


class GrowthJson(TypedDict):
    """A series of profiles, in order, and the call sites that grow, leaks first."""

    message: str | None
    """The reason for having no verdicts; null with verdicts."""
    headline: str | None
    """The line that leaks fastest; null without a leak."""
    points: list[GrowthPointJson]
    sites: list[GrowthSiteJson]
    rest: list[int]
    """Bytes of all other sites together, in each profile."""


@endpoint("growth", RECORDING, SAME_RUN, report=OF_DEVICE_PROFILES)
def series(recording: Recording, recordings: Sequence[Recording]) -> GrowthJson:
    """Return the series of `recording`: a point for each profile, and its call sites, leaks first."""
    profiles, _ = usable(find_series(recording, recordings), growth)
    found = growth(profiles)
    sites, message = found.leaks.sites, found.leaks.steps.message or None
    return {
        "message": message,
        "headline": leaking(found.leaks, _lines(found)) or None,
        "points": [
            record(GrowthPointJson, point, point.capture_info or CaptureInfo(), bytes=total)
            for point, total in zip(found.series, found.total.tolist(), strict=True)
        ],
        "sites": [
            {
                "site": _site(found.series[int(found.holder[i])], int(sites.row[i])),
                "verdict": NAMES[Verdict(int(sites.verdict[i]))] if message is None else None,
                "sentence": sentence(found.leaks, sites, i) if message is None else None,
                "bytes_per_profile": float(sites.bytes_per_step[i]),
                "confidence": round(float(sites.confidence[i]), 4),
                "allocations": int(sites.allocations[i]),
                "curve": sites.live[i].tolist(),
            }
            for i in range(min(MAX_SITES, len(found.holder)))
            if sites is not None
        ],
        "rest": sites.live[MAX_SITES:].sum(axis=0).tolist() if sites is not None else [],
    }


def _lines(found: Growth) -> list[str]:
    if found.leaks.sites is None:
        return []
    rows = found.leaks.sites.row[:MAX_SITES].tolist()
    return [
        line_text(found.series[holder], row)
        for holder, row in zip(found.holder[:MAX_SITES].tolist(), rows, strict=True)
    ]


def _site(recording: Recording, row: int) -> str:
    what, source = recording.allocations.name[row], source_text(recording, row)
    return " in ".join(part for part in (what if what != "buffer" else "", source) if part) or "no Python line"
