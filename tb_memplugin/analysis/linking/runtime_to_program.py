"""Links from runtime allocations to the buffer allocations of the programs that ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.linking.executions import PROGRAM_TITLE
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import RegionKind, SpanKind
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.recording import Recording

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
    built = _executable_rows(allocator)
    for number, candidate in enumerate(programs):
        match = PROGRAM_TITLE.fullmatch(candidate.title)
        candidates = built[_has_function(allocator, match[1])[built]] if match else built[:0]
        candidates = candidates[program[candidates] < 0]
        if not len(candidates) or not len(candidate.regions):
            continue
        sizes = np.where(_allocated_regions(candidate), _round_up(candidate.regions.size), -1)
        # An output that aliases an argument needs new memory only if the argument could not be donated.
        order = np.lexsort((candidate.regions.kind & RegionKind.PARAMETER, sizes))
        wanted = _round_up(rows.requested[candidates])
        at = np.minimum(np.searchsorted(sizes[order], wanted), len(order) - 1)
        same = sizes[order][at] == wanted
        program[candidates[same]], region[candidates[same]] = number, order[at[same]]
    executable = np.zeros(len(rows), dtype=bool)
    executable[built] = True
    return RuntimeToProgram(program, region, executable)


def running_programs(allocator: Recording, programs: Sequence[Recording], position: int) -> list[int]:
    """Return the indices of the programs that are running at the event at a position."""
    spans, clock = allocator.spans, allocator.clock
    if spans is None or clock is None or not 0 <= position < len(clock):
        return []
    time = clock[position]
    executing = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns <= time) & (time < spans.end_ns)
    names = {spans.name[row] for row in np.flatnonzero(executing).tolist()}
    return [number for number, program in enumerate(programs) if not names.isdisjoint(_span_names(program))]


def running_intervals(allocator: Recording, programs: Sequence[Recording]) -> list[tuple[int, list[int]]]:
    """Return running_programs for all positions: each position where it changes, with the indices from there on.

    The first position is -1, before all events.
    """
    spans, clock = allocator.spans, allocator.clock
    if spans is None or clock is None:
        return [(-1, [])]
    names = list(spans.name.strings)
    executions = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns < spans.end_ns)
    during: dict[int, Mask] = {}  # per program index: a mask of the positions from -1 on
    for number, program in enumerate(programs):
        codes = [code for code, name in enumerate(names) if name in _span_names(program)]
        executing = executions & np.isin(spans.name.codes, codes)
        if executing.any():
            begin, end = (np.searchsorted(clock, time[executing]) for time in (spans.start_ns, spans.end_ns))
            change = np.bincount(begin, minlength=len(clock) + 1) - np.bincount(end, minlength=len(clock) + 1)
            during[number] = np.r_[False, np.cumsum(change[:-1]) > 0]
    changed = [np.flatnonzero(np.diff(mask)) + 1 for mask in during.values()]
    changes = np.unique(np.concatenate([[0], *changed])).tolist()
    return [
        (change_position - 1, [number for number, mask in during.items() if mask[change_position]])
        for change_position in changes
    ]


def _span_names(program: Recording) -> set[str]:
    """Return the names of a program's spans: devices use the program's title, hosts the function's name."""
    match = PROGRAM_TITLE.fullmatch(program.title)
    return {program.title, match[1]} if match else {program.title}


def _allocated_regions(program: Recording) -> Mask:
    """Mark the regions that an execution allocates: temporaries and outputs."""
    kind = program.regions.kind
    output = (kind & (RegionKind.OUTPUT | RegionKind.THREAD_LOCAL)) == RegionKind.OUTPUT
    mask: Mask = (kind == RegionKind.TEMPORARY) | output
    return mask


def _executable_rows(allocator: Recording) -> I64:
    """Return the rows that a program's execution allocated."""
    stacks, leaf = allocator.stacks, allocator.allocations.stack
    inside = np.r_[stacks.function.isin(PROGRAM_FRAMES), False]  # the last is for -1
    while True:
        deeper = inside | np.r_[inside[stacks.parent], False]
        if (deeper == inside).all():
            return np.flatnonzero(inside[leaf])
        inside = deeper


def _has_function(allocator: Recording, function: str) -> Mask:
    return allocator.allocations.scope.isin({function})


def _round_up(size: I64) -> I64:
    up: I64 = -(-size // ROUNDING) * ROUNDING
    return up
