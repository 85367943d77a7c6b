"""Details of one allocation: its row, its stacks, who shares its bytes, and what a program planned in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import numpy as np

from tb_memplugin.analysis.fragmentation import overlap, region_numbers
from tb_memplugin.analysis.linking import link_to_programs
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import PROGRAMS, RECORDING, Integer, last_row
from tb_memplugin.questions.asking.json_types import StackFrameJson
from tb_memplugin.questions.asking.payload import encode
from tb_memplugin.questions.recording.sites import stack_frames

MAX_SHARERS = 200
SAME_BUFFER = "same buffer"
SAME_BYTES = "same bytes at another time"
MAX_PLANNED_BUFFERS = 20


class SchedulePointJson(TypedDict):
    """A position, and the instruction there; empty outside a program."""

    position: int
    """The position on the axis."""
    instruction: str
    """The instruction there; empty outside a program."""


class RegionJson(TypedDict):
    """The region that an allocation lies in; `index` is the source's own number of it."""

    index: int
    kind: str
    size: int


class SharerJson(TypedDict):
    """An allocation that uses some of the same bytes."""

    row: int
    name: str
    size: int
    defined: int
    last_used: int
    relation: str


class PlannedBufferJson(TypedDict):
    """A buffer that a program planned in an allocation."""

    row: int
    name: str
    op_name: str
    size: int


class PlannedAllocationJson(TypedDict):
    """The program that an allocation was made for, and the buffers planned in it, largest first."""

    recording: str
    title: str
    memory: str
    kind: str
    size: int
    buffers: list[PlannedBufferJson]
    buffers_total: int


class DetailsJson(TypedDict):
    """One allocation in full. Positions are those of the axis; sizes are in bytes."""

    row: int
    name: str
    op: str
    op_name: str
    role: int
    size: int
    requested: int
    shape: str
    dtype: str
    region: RegionJson | None
    offset: int
    start: int
    end: int
    defined: SchedulePointJson
    last_used: SchedulePointJson
    stack: list[StackFrameJson]
    """The innermost frame comes first."""
    freed_stack: list[StackFrameJson]
    """Of the event that freed it; empty where that is unknown."""
    shares: list[SharerJson]
    shares_total: int
    planned: NotRequired[PlannedAllocationJson | None]
    """Of an allocation that a program's execution made; null where the program is unknown."""


def _of_every_row(recording: Recording, programs: Sequence[Recording]) -> bytes:
    """Return the part of every row's details that the table `rows` does not have.

    Tables `rows` (leaves in `frames`, and an entry of the list `planned`; -1 for none) and `frames`.
    """
    rows, stacks = recording.allocations, recording.stacks
    plans, plan = _plan_of_every_row(recording, programs)
    none = np.full(len(rows), -1, dtype=np.int32)
    return encode(
        {"planned": plans},
        {
            "rows": {
                "stack": rows.stack,
                "freed_stack": none if recording.free_stack is None else recording.free_stack,
                "planned": plan,
            },
            "frames": {
                "parent": stacks.parent,
                "function": stacks.function,
                "file": stacks.file,
                "line": stacks.line,
            },
        },
    )


def _plan_of_every_row(
    recording: Recording, programs: Sequence[Recording]
) -> tuple[list[PlannedAllocationJson | None], I32]:
    """Return the plan of each region that any row was joined to, and which of these each row has, -1 for none."""
    plan = np.full(len(recording.allocations), -1, dtype=np.int32)
    if not recording.kind.runs_programs:
        return [], plan
    joined = link_to_programs(recording, programs)
    known = np.flatnonzero(joined.program >= 0)
    pairs = np.stack([joined.program[known], joined.region[known]])
    _, first, inverse = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    plan[known] = inverse.reshape(-1)
    return [planned(recording, int(known[i]), programs) for i in first], plan


@endpoint("details", RECORDING, PROGRAMS, Integer("row", 0, last_row), report=InReport(every=_of_every_row))
def details_with_plan(recording: Recording, programs: Sequence[Recording], row: int) -> DetailsJson:
    """Return an allocation's details, with what a program planned in it if an allocator made it."""
    found = details(recording, row)
    if recording.kind.runs_programs:
        found["planned"] = planned(recording, row, programs)
    return found


def details(recording: Recording, row: int) -> DetailsJson:
    """One buffer: everything known of it, its stack, and who else uses its bytes."""
    table = recording.allocations
    shares = overlap(recording, row)
    return {
        "row": row,
        "name": table.name[row],
        "op": table.op[row],
        "op_name": table.op_name[row],
        "role": int(roles(recording)[row]),
        "size": int(table.size[row]),
        "requested": int(table.requested[row]),
        "shape": table.shape[row],
        "dtype": table.dtype[row],
        "region": _region(recording, int(table.region[row])),
        "offset": int(table.offset[row]),
        "start": int(table.start[row]),
        "end": int(table.end[row]),
        "defined": _position(recording, int(table.defined[row])),
        "last_used": _position(recording, int(table.last_used[row])),
        "stack": stack_frames(recording, int(table.stack[row])),
        "freed_stack": stack_frames(
            recording, int(recording.free_stack[row]) if recording.free_stack is not None else -1
        ),
        "shares": [
            {
                "row": other,
                "name": table.name[other],
                "size": int(table.size[other]),
                "defined": int(table.defined[other]),
                "last_used": int(table.last_used[other]),
                "relation": SAME_BUFFER if same else SAME_BYTES,
            }
            for other, same in zip(
                shares.row[:MAX_SHARERS].tolist(), shares.same_buffer[:MAX_SHARERS].tolist(), strict=True
            )
        ],
        "shares_total": len(shares.row),
    }


def _region(recording: Recording, region: int) -> RegionJson | None:
    """None where it is not known where the buffer lies."""
    if region < 0:
        return None
    regions = recording.regions
    return {
        "index": int(region_numbers(recording)[region]),
        "kind": RegionKind(int(regions.kind[region])).label,
        "size": int(regions.size[region]),
    }


def _position(recording: Recording, position: int) -> SchedulePointJson:
    instruction = ""
    if recording.program is not None and 0 <= position < recording.length:
        instruction = recording.program.name[position]
    return {"position": position, "instruction": instruction}


def planned(recording: Recording, row: int, programs: Sequence[Recording]) -> PlannedAllocationJson | None:
    """The program that a runtime allocation was made for, and the buffers planned inside it, largest first."""
    joined = link_to_programs(recording, programs)
    if joined.program[row] < 0:
        return None
    program, region = programs[joined.program[row]], int(joined.region[row])
    rows = program.allocations
    inside = np.flatnonzero(rows.region == region)
    inside = inside[np.argsort(-rows.size[inside], kind="stable")]
    return {
        "recording": program.id,
        "title": program.title,
        "memory": program.memory,
        "kind": RegionKind(int(program.regions.kind[region])).label,
        "size": int(program.regions.size[region]),
        "buffers": [
            {"row": i, "name": rows.name[i], "op_name": rows.op_name[i], "size": int(rows.size[i])}
            for i in inside[:MAX_PLANNED_BUFFERS].tolist()
        ],
        "buffers_total": len(inside),
    }
