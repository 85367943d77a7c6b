"""What was on a device at the same time: the programs that took turns there, and what each of them held meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.linking.runtime_to_program import PROGRAM_TITLE
from tb_memplugin.analysis.ownership.by_model import PARAMETER
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.kinds import RegionKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans


class ResidentProgram(NamedTuple):
    program: Recording
    held: int  # bytes of arguments, outputs and constants: there from its start to its end, and usually longer
    again: int  # of these, arguments that a larger program has by the same path and shape: the same arrays
    temporary: int  # bytes that it needs only while it runs
    runs: int | None  # in the profile; None where the profile does not tell


class CoResidency(NamedTuple):
    """Programs of one host's memory, the largest first. `bytes` is the most that can have been there at once."""

    host: str
    memory: str
    programs: list[ResidentProgram]
    bytes: int
    seen_running: bool  # the programs are those that ran, not all that the profile carries


def co_residency(recordings: Sequence[Recording]) -> list[CoResidency]:
    """Per host and memory that more than one program was in; by bytes, most first.

    Programs of a device run one after another, so that their temporaries take turns: the largest counts. What they
    hold is added up, arguments of one path and shape once; but one program's output may be another's argument, so the
    sum is an upper bound.
    """
    found = []
    for host in dict.fromkeys(recording.host for recording in recordings):
        here = [recording for recording in recordings if recording.host == host]
        runs = _count_runs(here)
        programs = [recording for recording in here if recording.kind.has_program]
        for memory in dict.fromkeys(program.memory for program in programs):
            ran = _resident_programs([program for program in programs if program.memory == memory], runs)
            most = sum(r.held - r.again for r in ran) + max((r.temporary for r in ran), default=0)
            if len(ran) > 1:
                found.append(CoResidency(host, memory, ran, most, runs is not None))
    return sorted(found, key=lambda place: -place.bytes)


def running_at_peak(allocator: Recording) -> list[str]:
    """The programs or jitted functions in execution when most was in use, each once."""
    spans, clock, at = allocator.spans, allocator.clock, peak(allocator).position
    if spans is None or clock is None or not len(clock):
        return []
    now = clock[at]
    running = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns <= now) & (now < spans.end_ns)
    return list(dict.fromkeys(spans.name[span] for span in np.flatnonzero(running).tolist()))


def _resident_programs(programs: Sequence[Recording], runs: dict[str, int] | None) -> list[ResidentProgram]:
    """Those that ran, the largest first."""
    found, seen = list[ResidentProgram](), set[tuple[str, str]]()
    for program in sorted(programs, key=lambda program: -reserved_bytes(program)):
        ran = _run_count(program.title, runs)
        if ran == 0:
            continue
        arguments = _argument_bytes(program)
        again = sum(size for key, size in arguments.items() if key in seen)
        seen |= arguments.keys()
        temporary = int(program.regions.size[program.regions.kind == RegionKind.TEMPORARY].sum())
        found.append(ResidentProgram(program, reserved_bytes(program) - temporary, again, temporary, ran))
    return found


def _run_count(title: str, runs: dict[str, int] | None) -> int | None:
    """A device's own record names the program; a host's only the function, of which there may be several programs."""
    if runs is None:
        return None
    named = PROGRAM_TITLE.fullmatch(title)
    return runs.get(title) or runs.get(named[1] if named else title, 0)


def _argument_bytes(program: Recording) -> dict[tuple[str, str], int]:
    """Bytes of each named argument, by its path and shape."""
    rows = program.allocations
    codes = [code for code in range(len(rows.op.strings)) if rows.op.strings[code] == PARAMETER]
    given = np.isin(rows.op.codes, codes) & ((program.regions.kind[rows.region] & RegionKind.PARAMETER) != 0)
    of = np.flatnonzero(given).tolist()
    return {(rows.scope[row], rows.shape[row]): int(rows.size[row]) for row in of if rows.scope[row]}


def _count_runs(recordings: Sequence[Recording]) -> dict[str, int] | None:
    """Executions of each program or jitted function of a host; None where the profile records none."""
    counts: dict[str, int] = {}
    for allocator in recordings:
        if allocator.kind.runs_programs and allocator.spans is not None:
            for name, count in _count_executions(allocator.spans).items():
                counts[name] = max(counts.get(name, 0), count)  # each has the host's, or those of its own device
    return counts or None


def _count_executions(spans: NamedSpans) -> dict[str, int]:
    counts: dict[str, int] = {}
    executions = np.flatnonzero(spans.kind == SpanKind.EXECUTION)
    codes = spans.name.codes[executions]
    for code in np.unique(codes).tolist():
        of = executions[codes == code]
        # A call within a call of the same name is a part of it: spans come in order of their starts.
        reach = np.maximum.accumulate(spans.end_ns[of])
        counts[spans.name.strings[code] if code >= 0 else ""] = 1 + int((spans.start_ns[of][1:] >= reach[:-1]).sum())
    return counts
