"""Programs that share a device's memory, and the memory that each of them keeps there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.linking.executions import count_runs, run_count
from tb_memplugin.analysis.ownership.by_model import PARAMETER
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.kinds import RegionKind, SpanKind
from tb_memplugin.model.recording import Recording


class ResidentProgram(NamedTuple):
    program: Recording
    persistent: int  # bytes of arguments, outputs and constants: in memory during its run, and usually longer
    shared: int  # bytes of these that are arguments of a larger program too, by path and shape
    temporary: int  # bytes that it needs only while it runs
    runs: int | None  # in the profile; None if the profile records no executions


class CoResidency(NamedTuple):
    """Programs in one memory of a host, largest first. `bytes` is an upper bound of their memory at one time."""

    host: str
    memory: str
    programs: list[ResidentProgram]
    bytes: int
    executed: bool  # only programs that ran are listed, not all in the profile


def co_residency(recordings: Sequence[Recording]) -> list[CoResidency]:
    """Return each memory that several programs share, most bytes first.

    A device runs one program at a time, so only the largest temporary memory counts. Persistent memory is added up;
    arguments of equal path and shape count once. One program's output may be another's argument, so the sum is an upper
    bound.
    """
    found = []
    for host in dict.fromkeys(recording.host for recording in recordings):
        here = [recording for recording in recordings if recording.host == host]
        runs = count_runs(here)
        programs = [recording for recording in here if recording.kind.has_program]
        for memory in dict.fromkeys(program.memory for program in programs):
            ran = _resident_programs([program for program in programs if program.memory == memory], runs)
            most = sum(r.persistent - r.shared for r in ran) + max((r.temporary for r in ran), default=0)
            if len(ran) > 1:
                found.append(CoResidency(host, memory, ran, most, runs is not None))
    return sorted(found, key=lambda place: -place.bytes)


def running_at_peak(allocator: Recording) -> list[str]:
    """Return the distinct programs or jitted functions that run at the allocator's peak."""
    spans, clock, at = allocator.spans, allocator.clock, peak(allocator).position
    if spans is None or clock is None or not len(clock):
        return []
    now = clock[at]
    running = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns <= now) & (now < spans.end_ns)
    return list(dict.fromkeys(spans.name[span] for span in np.flatnonzero(running).tolist()))


def _resident_programs(programs: Sequence[Recording], runs: dict[str, int] | None) -> list[ResidentProgram]:
    """Return the programs that ran, largest first."""
    found, seen = list[ResidentProgram](), set[tuple[str, str]]()
    for program in sorted(programs, key=lambda program: -reserved_bytes(program)):
        ran = run_count(program.title, runs)
        if ran == 0:
            continue
        arguments = _argument_bytes(program)
        shared = sum(size for key, size in arguments.items() if key in seen)
        seen |= arguments.keys()
        temporary = int(program.regions.size[program.regions.kind == RegionKind.TEMPORARY].sum())
        found.append(ResidentProgram(program, reserved_bytes(program) - temporary, shared, temporary, ran))
    return found


def _argument_bytes(program: Recording) -> dict[tuple[str, str], int]:
    """Return the bytes of each named argument, by path and shape."""
    rows = program.allocations
    given = rows.op.isin({PARAMETER}) & ((program.regions.kind[rows.region] & RegionKind.PARAMETER) != 0)
    of = np.flatnonzero(given & rows.scope.nonempty)
    keys = zip(rows.scope.take(of).tolist(), rows.shape.take(of).tolist(), strict=True)
    return dict(zip(keys, rows.size[of].tolist(), strict=True))
