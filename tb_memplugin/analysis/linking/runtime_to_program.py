"""Which planned memory of which program a runtime allocation is: from a moment at runtime to the program that ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import RegionKind, SpanKind
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.recording import Recording

ROUNDING = 256  # bytes; the runtime asks for whole multiples
PROGRAM_TITLE = re.compile(r"(?:jit_|pmap_)?(.+?)\(\d+\)")


class RuntimeToProgram(NamedTuple):
    """Per row of the allocator's recording: the program (its number in the list given) and the region in it, or -1.

    `executable` rows are those that a program's execution allocated, joined or not.
    """

    program: I32
    region: I32
    executable: Mask


def link_to_programs(allocator: Recording, programs: Sequence[Recording]) -> RuntimeToProgram:
    """By the jitted function that the allocation's stack names, and the size that was asked for.

    Of several regions of one size any will do: the runtime does not tell them apart either.
    """
    rows = allocator.allocations
    program = np.full(len(rows), -1, dtype=np.int32)
    region = np.full(len(rows), -1, dtype=np.int32)
    built = _executable_rows(allocator)
    for number, candidate in enumerate(programs):
        match = PROGRAM_TITLE.fullmatch(candidate.title)
        mine = built[_has_function(allocator, match[1])[built]] if match else built[:0]
        mine = mine[program[mine] < 0]
        if not len(mine) or not len(candidate.regions):
            continue
        sizes = np.where(_allocated_regions(candidate), _round_up(candidate.regions.size), -1)
        # An output that is an argument's memory too needs new memory only where the argument could not be donated.
        order = np.lexsort((candidate.regions.kind & RegionKind.PARAMETER, sizes))
        wanted = _round_up(rows.requested[mine])
        at = np.minimum(np.searchsorted(sizes[order], wanted), len(order) - 1)
        same = sizes[order][at] == wanted
        program[mine[same]], region[mine[same]] = number, order[at[same]]
    executable = np.zeros(len(rows), dtype=bool)
    executable[built] = True
    return RuntimeToProgram(program, region, executable)


def running_programs(allocator: Recording, programs: Sequence[Recording], position: int) -> list[int]:
    """The programs (their numbers in the list) that an execution is marked of at the event at a position."""
    spans, clock = allocator.spans, allocator.clock
    if spans is None or clock is None or not 0 <= position < len(clock):
        return []
    time = clock[position]
    ours = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns <= time) & (time < spans.end_ns)
    names = {spans.name[row] for row in np.flatnonzero(ours).tolist()}
    return [number for number, program in enumerate(programs) if not names.isdisjoint(_span_names(program))]


def running_intervals(allocator: Recording, programs: Sequence[Recording]) -> list[tuple[int, list[int]]]:
    """`running` of every position: from each that it changes at to the next; the first is before all events."""
    spans, clock = allocator.spans, allocator.clock
    if spans is None or clock is None:
        return [(-1, [])]
    names = [spans.name.strings[code] for code in range(len(spans.name.strings))]
    executions = (spans.kind == SpanKind.EXECUTION) & (spans.start_ns < spans.end_ns)
    during: dict[int, Mask] = {}  # by a program's number: the positions from -1 on
    for number, program in enumerate(programs):
        codes = [code for code, name in enumerate(names) if name in _span_names(program)]
        ours = executions & np.isin(spans.name.codes, codes)
        if ours.any():
            begin, end = (np.searchsorted(clock, time[ours]) for time in (spans.start_ns, spans.end_ns))
            change = np.bincount(begin, minlength=len(clock) + 1) - np.bincount(end, minlength=len(clock) + 1)
            during[number] = np.r_[False, np.cumsum(change[:-1]) > 0]
    changed = [np.flatnonzero(np.diff(mask)) + 1 for mask in during.values()]
    places = np.unique(np.concatenate([[0], *changed])).tolist()
    return [(place - 1, [number for number, mask in during.items() if mask[place]]) for place in places]


def _span_names(program: Recording) -> set[str]:
    """What spans call it: a device tells a program's key, a host the function that was compiled."""
    match = PROGRAM_TITLE.fullmatch(program.title)
    return {program.title, match[1]} if match else {program.title}


def _allocated_regions(program: Recording) -> Mask:
    """Regions that an execution allocates: temporaries and outputs, but no argument, no constant and no stack."""
    kind = program.regions.kind
    output = (kind & (RegionKind.OUTPUT | RegionKind.THREAD_LOCAL)) == RegionKind.OUTPUT
    mask: Mask = (kind == RegionKind.TEMPORARY) | output
    return mask


def _executable_rows(allocator: Recording) -> I64:
    """Rows that the execution of a program allocated."""
    stacks, leaf = allocator.stacks, allocator.allocations.stack
    names = stacks.function.strings
    frames = np.isin(stacks.function.codes, [i for i in range(len(names)) if names[i] in PROGRAM_FRAMES])
    inside = np.r_[frames, False]  # the last is for -1
    while True:
        deeper = inside | np.r_[inside[stacks.parent], False]
        if (deeper == inside).all():
            return np.flatnonzero(inside[leaf])
        inside = deeper


def _has_function(allocator: Recording, function: str) -> Mask:
    scope = allocator.allocations.scope
    wanted = np.array([scope.strings[i] == function for i in range(len(scope.strings))] + [False])
    mask: Mask = wanted[scope.codes]
    return mask


def _round_up(size: I64) -> I64:
    up: I64 = -(-size // ROUNDING) * ROUNDING
    return up
