"""Recordings of a watched job, which capture.watch makes: figures, growth, bytes by holder, and peaks of phases."""

from collections.abc import Iterable
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.fragmentation import fragmentation
from tb_memplugin.analysis.leaks.classify import MIN_SAMPLES_OF_STEPS, MIN_WINDOWS, SAMPLES, floor_growth
from tb_memplugin.analysis.leaks.over_snapshots import rise, snapshots_of
from tb_memplugin.analysis.usage.figure_definitions import WATCH, Figure, define
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.model.kinds import HOST_MEMORY, HostPart
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.asking.source import Recordings
from tb_memplugin.questions.oom.ledger import HolderJson, holders
from tb_memplugin.sizes import bytes_text


def growth_sentence(recording: Recording, others: Iterable[Recording] | None = None) -> str:
    """Return a sentence about memory that grows from step to step; empty where it does not, or is unknown.

    `others`: recordings of the run, of whose snapshots the sentence names the line that grows most.
    """
    found = floor_growth(recording)
    if found is None or not found.grows:
        return ""
    where = "between steps " if found.unit == "step" else ""
    rate = bytes_text(round(found.bytes_per_unit))
    since = f"{bytes_text(found.growth)} since the warm-up"
    if recording.memory == HOST_MEMORY:
        line = _next_step(recording)
    else:
        line = "" if others is None else _line_text(recording, others)
    return f"The least memory in use {where}grows by {rate} per {found.unit}, {since}: a leak{line}."


# By the part of the host's memory that grows most: JAX and PyTorch have no snapshots of it.
NEXT_STEPS = {
    HostPart.PRIVATE: "most in memory of this process: memray, or tracemalloc, shows its Python lines",
    HostPart.CHILDREN: "most in child processes: memray run --follow-fork shows their Python lines",
    HostPart.SHM: "most in files of /dev/shm, which processes share: ls -lt /dev/shm lists them",
}


def _next_step(recording: Recording) -> str:
    ledger = recording.ledger
    if ledger is None or not (known := [part for part in NEXT_STEPS if part in ledger.name]):
        return ""
    parts = ledger.bytes[[ledger.name.index(part) for part in known]]
    quarter = max(parts.shape[1] // 4, 1)  # the first one is the warm-up
    rise = np.median(parts[:, -quarter:], axis=1) - np.median(parts[:, quarter : 2 * quarter], axis=1)
    return f"; {NEXT_STEPS[known[int(rise.argmax())]]}"


def _line_text(recording: Recording, others: Iterable[Recording]) -> str:
    every = list(others)
    found = rise(recording, every)
    if found is None:
        if (taken := len(snapshots_of(recording, every))) < 2:
            return f"; its lines are unknown, as this run has {'one snapshot' if taken else 'no snapshots'}"
        return "; compare two snapshots of this run to see its lines"
    first, last = (_moment(recording, snapshot) for snapshot in (found.first, found.last))
    return (
        f"; most from {found.line}, {bytes_text(found.line_bytes)} of the {bytes_text(found.bytes)} between the "
        f"snapshots {first} and {last}"
    )


def _moment(recording: Recording, snapshot: Recording) -> str:
    start, taken = recording.capture_info, snapshot.capture_info
    if taken is not None and taken.step is not None:
        return f"of step {taken.step:,}"
    if taken is not None and taken.time_ns is not None and start is not None and start.time_ns is not None:
        return f"at {_duration_text(max(taken.time_ns - start.time_ns, 0) / 1e9)}"
    return snapshot.title


def growth_message(recording: Recording, source: Recordings | None = None) -> str:
    """Return whether the memory between steps grows, in a sentence. `source` has the snapshots of the run."""
    found = floor_growth(recording)
    if found is None:
        marked, unmarked = MIN_WINDOWS * MIN_SAMPLES_OF_STEPS, MIN_WINDOWS * SAMPLES
        return (
            f"Growth between steps needs {MIN_WINDOWS} marked steps in {marked} samples, "
            f"or {unmarked} samples without marks."
        )
    if not found.grows:
        return f"The least memory in use{' between steps' if found.unit == 'step' else ''} does not grow."
    return growth_sentence(recording, None if source is None else source.run_of(recording))


def _duration_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in reading order."""
    top, live, reported = peak(recording), usage(recording).live, recording.reported
    pieces = fragmentation(recording)
    at = top.position if 0 <= top.position < recording.length else None
    largest = pieces.largest_free[at] if at is not None else np.nan
    fragmented = pieces.fragmented[at] if at is not None else np.nan
    free = int(reported.free[at]) if at is not None and reported is not None and recording.capacity else None
    reserved = recording.reserved
    return [
        define(WATCH, "live_peak", top.bytes),
        define(WATCH, "capacity", recording.capacity),
        define(WATCH, "reported_peak", recording.reported_peak),
        define(WATCH, "last", int(live[-1]) if len(live) else None),
        define(WATCH, "free", free),
        define(WATCH, "largest_free", int(largest) if np.isfinite(largest) else None),
        define(WATCH, "fragmented", int(fragmented) if np.isfinite(fragmented) else None),
        *([define(WATCH, "reserved", int(reserved.max(initial=0)))] if reserved is not None else []),
    ]


MAX_POINTS = 512


class PhasePeakJson(TypedDict):
    """The most bytes in use during a phase of the steps, the largest first."""

    phase: str
    """The name, as the script gives it."""
    bytes: int
    """The bytes in use."""
    time_ns: int
    """The time since the recording started."""


class HolderCurveJson(TypedDict):
    """A holder of memory over time."""

    holder: str
    bytes: list[int]
    """At each of `time_ns`."""


class LedgerJson(TypedDict):
    """The holders of a memory over time, in stacking order; the last one may be `Free`."""

    time_ns: list[int]
    """Since the recording started: the moment of each part of the time at which the most memory is used."""
    holders: list[HolderCurveJson]
    phases: list[PhasePeakJson]


@endpoint("ledger", RECORDING, report=InReport(lambda recording: recording.kind.is_sampled))
def ledger(recording: Recording) -> LedgerJson:
    """Return the ledger of a memory; without holders where only the bytes in use are known."""
    found, clock = recording.ledger, recording.clock
    answer: LedgerJson = {"time_ns": [], "holders": [], "phases": phases(recording)}
    if found is not None and clock is not None and len(clock):
        part = np.arange(len(clock)) * MAX_POINTS // max(len(clock), MAX_POINTS)
        order = np.lexsort((found.used, part))
        at = order[np.flatnonzero(np.diff(part, append=-1))]  # the last of each part has the most
        answer["time_ns"] = clock[at].tolist()
        curves = zip(found.name, found.bytes[:, at].tolist(), strict=True)
        answer["holders"] = [{"holder": name, "bytes": sizes} for name, sizes in curves]
    return answer


def holders_at(recording: Recording, position: int) -> list[HolderJson]:
    """Return the holders at a position; none where they are unknown."""
    found = recording.ledger
    if found is None or not 0 <= position < recording.length:
        return []
    return holders(zip(found.name, found.bytes[:, position].tolist(), strict=True))


def phases(recording: Recording) -> list[PhasePeakJson]:
    """Return the peaks of the phases, the largest first; none where no phase was marked."""
    found, clock = recording.phases, recording.clock
    if found is None or clock is None:
        return []
    rows = zip(found.name, found.bytes.tolist(), clock[found.position].tolist(), strict=True)
    listed: list[PhasePeakJson] = [{"phase": name, "bytes": size, "time_ns": time} for name, size, time in rows]
    return sorted(listed, key=lambda phase: -phase["bytes"])
