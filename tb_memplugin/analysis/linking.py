"""Links from a device's memory to the programs that ran.

A TPU's runtime does not allocate a program's temporary memory: it reserves it as stack, at the end of the heap, before
the program runs, and keeps it until another program needs a larger stack or the heap needs the memory.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.ownership.by_model import PARAMETER
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.steps import names_at
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import DEVICE_MEMORY, RegionKind, SpanKind
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.native.graph.call_graph import with_callees

PROGRAM_TITLE = re.compile(r"(?:jit_|pmap_)?(.+?)\(\d+\)")


def count_runs(recordings: Sequence[Recording]) -> dict[str, int] | None:
    """Return the number of executions of each program or jitted function of a host; None if none are recorded."""
    counts: dict[str, int] = {}
    for allocator in recordings:
        if allocator.kind.runs_programs and allocator.spans is not None:
            for name, count in _count_executions(allocator.spans).items():
                counts[name] = max(counts.get(name, 0), count)  # allocators repeat their host's executions
    return counts or None


def run_count(title: str, runs: dict[str, int] | None) -> int | None:
    """Return a program's number of runs. Device events name the program; host events only name the function."""
    if runs is None:
        return None
    named = PROGRAM_TITLE.fullmatch(title)
    return runs.get(title) or runs.get(named[1] if named else title, 0)


def _count_executions(spans: NamedSpans) -> dict[str, int]:
    counts: dict[str, int] = {}
    executions = np.flatnonzero(spans.kind == SpanKind.EXECUTION)
    codes = spans.name.codes[executions]
    for code in np.unique(codes).tolist():
        of = executions[codes == code]
        # A call within a call of the same name is part of it. Spans are in order of their starts.
        reach = np.maximum.accumulate(spans.end_ns[of])
        counts[spans.name[int(of[0])]] = 1 + int((spans.start_ns[of][1:] >= reach[:-1]).sum())
    return counts


ROUNDING = 256  # bytes; the runtime rounds requests up to multiples of this


class RuntimeToProgram(NamedTuple):
    """Per row of an allocator's recording: the index of its program and the region in it, or -1.

    `executable` marks all rows that a program's execution allocated, linked or not.
    """

    program: I32
    region: I32
    executable: Mask


def link_to_programs(allocator: Recording, programs: Sequence[Recording]) -> RuntimeToProgram:
    """Link allocations to programs by the jitted function on the stack and the requested size.

    Of several regions of one size, an arbitrary one is chosen: the runtime does not distinguish them.
    """
    rows = allocator.allocations
    program = np.full(len(rows), -1, dtype=np.int32)
    region = np.full(len(rows), -1, dtype=np.int32)
    inside = with_callees(allocator.stacks.parent, allocator.stacks.function.isin(PROGRAM_FRAMES))
    executable = np.r_[inside, False][rows.stack]
    built = np.flatnonzero(executable)
    for number, candidate in enumerate(programs):
        match = PROGRAM_TITLE.fullmatch(candidate.title)
        candidates = built[rows.op_name.isin({match[1]})[built]] if match else built[:0]
        candidates = candidates[program[candidates] < 0]
        if not len(candidates) or not len(candidate.regions):
            continue
        kind = candidate.regions.kind
        is_output = (kind & (RegionKind.OUTPUT | RegionKind.THREAD_LOCAL)) == RegionKind.OUTPUT
        # An execution allocates temporaries and outputs.
        sizes = np.where((kind == RegionKind.TEMPORARY) | is_output, _round_up(candidate.regions.size), -1)
        # An output that aliases an argument needs new memory only if the argument could not be donated.
        order = np.lexsort((kind & RegionKind.PARAMETER, sizes))
        wanted = _round_up(rows.requested[candidates])
        at = np.minimum(np.searchsorted(sizes[order], wanted), len(order) - 1)
        same = sizes[order][at] == wanted
        program[candidates[same]], region[candidates[same]] = number, order[at[same]]
    return RuntimeToProgram(program, region, executable)


def running_programs(allocator: Recording, programs: Sequence[Recording], position: int) -> list[int]:
    """Return the indices of the programs that are running at the event at a position."""
    names = set(names_at(allocator, SpanKind.EXECUTION, position))
    return [number for number, program in enumerate(programs) if not names.isdisjoint(_span_names(program))]


def running_intervals(allocator: Recording, programs: Sequence[Recording]) -> list[tuple[int, list[int]]]:
    """Return running_programs for all positions: each position where it changes, with the indices from there on.

    The first position is -1, before all events.
    """
    spans, clock = allocator.spans, allocator.clock
    if spans is None or clock is None:
        return [(-1, [])]
    executions = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns < spans.end_ns)
    during: dict[int, Mask] = {}  # per program index: a mask of the positions from -1 on
    for number, program in enumerate(programs):
        executing = executions & spans.name.isin(_span_names(program))
        if executing.any():
            begin, end = (np.searchsorted(clock, time[executing]) for time in (spans.start_ns, spans.end_ns))
            change = np.bincount(begin, minlength=len(clock) + 1) - np.bincount(end, minlength=len(clock) + 1)
            during[number] = np.r_[False, np.cumsum(change[:-1]) > 0]
    changed = [np.flatnonzero(np.diff(mask)) + 1 for mask in during.values()]
    changes = np.unique(np.concatenate([[0], *changed])).tolist()
    return [(at - 1, [number for number, mask in during.items() if mask[at]]) for at in changes]


def _span_names(program: Recording) -> set[str]:
    """Return the names of a program's spans: devices use the program's title, hosts the function's name."""
    match = PROGRAM_TITLE.fullmatch(program.title)
    return {program.title, match[1]} if match else {program.title}


def _round_up(size: I64) -> I64:
    return -(-size // ROUNDING) * ROUNDING


# Beside the program's temporaries, the stack has room for the runtime: 16 MiB on a v6e. These bounds of that room are a
# choice.
MAX_MORE_BYTES, MAX_MORE_SHARE = 64 * 2**20, 0.05


class StackOfProgram(NamedTuple):
    program: I64  # per position: the index of the program whose temporaries the stack holds, -1 for none
    stack: I64  # per position: bytes of the stack; 0 where no program fits
    temporary: I64  # per program: bytes of its temporaries; 0 if it did not run


def stack_of_program(allocator: Recording, programs: Sequence[Recording]) -> StackOfProgram:
    """Find, at each position, the program that ran and whose temporaries fill the stack best."""
    runs = count_runs([allocator])
    ran = [run_count(program.title, runs) != 0 for program in programs]
    each = [temporary_bytes(program) if of else 0 for program, of in zip(programs, ran, strict=True)]
    temporary = np.array(each, dtype=np.int64)
    reserved = allocator.reported.reserved if allocator.reported is not None else np.empty(0, np.int64)
    program = fullest_program(reserved, temporary)
    return StackOfProgram(program, np.where(program >= 0, reserved, 0), temporary)


def fullest_program(stack: I64, temporary: I64) -> I64:
    """Return, for each size of a stack, the index of the temporaries that fill it best; -1 where none do."""
    if not len(temporary):
        return np.full(len(stack), -1)
    # The largest temporaries that are not larger than the stack; among equal programs, the first.
    order = np.lexsort((-np.arange(len(temporary)), temporary))
    best = order[np.maximum(np.searchsorted(temporary[order], stack, "right") - 1, 0)]
    needed, spare = temporary[best], stack - temporary[best]
    most = np.minimum(MAX_MORE_BYTES, stack // 2) + MAX_MORE_SHARE * needed
    return np.where((needed > 0) & (spare >= 0) & (spare <= most), best, -1)


def temporary_bytes(program: Recording) -> int:
    """Return the bytes of a program's temporaries in the device's memory; 0 in other memories."""
    temporary = program.regions.kind == RegionKind.TEMPORARY
    return int(program.regions.size[temporary].sum()) if program.memory == DEVICE_MEMORY else 0


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
    return list(dict.fromkeys(names_at(allocator, SpanKind.EXECUTION, peak(allocator).position)))


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
    of = np.flatnonzero(given & rows.op_name.nonempty)
    keys = zip(rows.op_name.take(of).tolist(), rows.shape.take(of).tolist(), strict=True)
    return dict(zip(keys, rows.size[of].tolist(), strict=True))
