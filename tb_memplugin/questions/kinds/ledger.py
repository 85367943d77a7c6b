"""The ledger of a watched memory: its bytes by holder at each moment, and the peaks of its phases."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.usage.live_set import share
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING

MAX_POINTS = 512


class PhasePeakJson(TypedDict):
    """The most bytes in use during a phase of the steps, the largest first."""

    phase: str
    """The name, as the script gives it."""
    bytes: int
    """The bytes in use."""
    time_ns: int
    """The time since the recording started."""


class HolderJson(TypedDict):
    """A holder of memory at one moment."""

    holder: str
    """`Live` and `Cache` are the framework's; `Private`, `Shared`, `Child processes` and `/dev/shm` are the host's; the
    others are processes by name, and what is left. From an engine's start-up lines: `weights`, `KV cache` and more."""
    bytes: int
    """The bytes that it holds."""
    share: float
    """The share of all."""


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
    """Return the holders at a position, or those that the text of an error states; none where they are unknown."""
    found, failure = recording.ledger, recording.out_of_memory
    held: list[tuple[str, int]] = []
    if failure is not None:
        held = [(one.holder, one.bytes) for one in failure.ledger]
    elif found is not None and 0 <= position < recording.length:
        held = list(zip(found.name, found.bytes[:, position].tolist(), strict=True))
    total = sum(size for _, size in held)
    return [{"holder": name, "bytes": size, "share": share(size, total)} for name, size in held]


def phases(recording: Recording) -> list[PhasePeakJson]:
    """Return the peaks of the phases, the largest first; none where no phase was marked."""
    found, clock = recording.phases, recording.clock
    if found is None or clock is None:
        return []
    rows = zip(found.name, found.bytes.tolist(), clock[found.position].tolist(), strict=True)
    listed: list[PhasePeakJson] = [{"phase": name, "bytes": size, "time_ns": time} for name, size, time in rows]
    return sorted(listed, key=lambda phase: -phase["bytes"])
