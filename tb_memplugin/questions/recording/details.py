"""Details of one allocation: its row, its stacks, who shares its bytes, and what a program planned in it."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict, cast

import numpy as np

from tb_memplugin.analysis.fragmentation import overlap, region_numbers
from tb_memplugin.analysis.linking import link_to_programs
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import PROGRAMS, RECORDING, Integer, last_row
from tb_memplugin.questions.asking.json_types import RowTextsJson, StackFrameJson
from tb_memplugin.questions.asking.payload import columns_of, encode
from tb_memplugin.questions.recording.columns import facts
from tb_memplugin.questions.recording.sites import stack_frames
from tb_memplugin.questions.records import record

MAX_SHARERS = 200
SAME_BUFFER = "same buffer"
SAME_BYTES = "same bytes at another time"
MAX_PLANNED_BUFFERS = 20
# Exported columns that a list of buffers has, and those of a single one.
TEXTS = ("name", "op", "op_name", "role", "shape", "source")
FACTS = ("row", *TEXTS, "dtype", "size_bytes", "requested_bytes")


class SchedulePointJson(TypedDict):
    """A position, and the instruction there; empty outside a program."""

    position: int
    """The position on the axis."""
    instruction: str
    """The instruction there; empty outside a program."""


class RegionJson(TypedDict):
    """The buffer allocation or segment that contains it; `index` is the source's own number of it."""

    index: int
    """The number that the source gives it."""
    kind: str
    """`parameter`, `output`, `constant`, `thread_local` or `temporary`."""
    size_bytes: int
    """Its size."""


class SharerJson(TypedDict):
    """A buffer that uses some of the same bytes."""

    row: int
    """The row in the recording."""
    name: str
    """Its name."""
    size_bytes: int
    """Its size."""
    defined: int
    """The position at which its value is written."""
    last_used: int
    """The position of its last use."""
    relation: str
    """`same buffer`, or `same bytes at another time`."""


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


class NamedRowJson(RowTextsJson):
    """The texts of a buffer or allocation; `row` selects it in `buffers --row`."""

    role: str
    """The role, in lower case."""


class BufferJson(NamedRowJson):
    """One buffer or allocation in full. Positions are those of the recording's axis."""

    dtype: str
    """The element type."""
    size_bytes: int
    """Bytes as placed."""
    requested_bytes: int
    """Bytes requested, without padding and rounding."""
    region: RegionJson | None
    """The buffer allocation or segment that contains it."""
    offset_bytes: int
    """The offset in that region."""
    allocated_at: int
    """The position of the allocation."""
    freed_at: int
    """The position of the free."""
    defined: SchedulePointJson
    """The position at which its value is written."""
    last_used: SchedulePointJson
    """Its last use."""
    stack: list[StackFrameJson]
    """The call stack of the allocation, innermost frame first; of a stack that is cut, from `source` on."""
    freed_stack: list[StackFrameJson]
    """The call stack of the free, likewise; empty where it is unknown."""
    shares: list[SharerJson]
    """Buffers that use some of the same bytes."""
    shares_total: int
    """The number of these."""


class DetailsJson(BufferJson):
    """One buffer or allocation in full, with the plan of the program that it was made for."""

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
            "frames": columns_of(stacks, ("parent", "function", "file", "line")),
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
    found = cast(DetailsJson, details(recording, row))
    if recording.kind.runs_programs:
        found["planned"] = planned(recording, row, programs)
    return found


def details(recording: Recording, row: int) -> BufferJson:
    """Return everything known of one buffer, its stack, and who else uses its bytes."""
    table = recording.allocations
    shares = overlap(recording, row)
    return record(
        BufferJson,
        **facts(recording, row, FACTS),
        region=_region(recording, int(table.region[row])),
        offset_bytes=int(table.offset[row]),
        allocated_at=int(table.start[row]),
        freed_at=int(table.end[row]),
        defined=_position(recording, int(table.defined[row])),
        last_used=_position(recording, int(table.last_used[row])),
        stack=stack_frames(recording, int(table.stack[row])),
        freed_stack=stack_frames(recording, int(recording.free_stack[row]) if recording.free_stack is not None else -1),
        shares=[
            {
                "row": other,
                "name": table.name[other],
                "size_bytes": int(table.size[other]),
                "defined": int(table.defined[other]),
                "last_used": int(table.last_used[other]),
                "relation": SAME_BUFFER if same else SAME_BYTES,
            }
            for other, same in zip(
                shares.row[:MAX_SHARERS].tolist(), shares.same_buffer[:MAX_SHARERS].tolist(), strict=True
            )
        ],
        shares_total=len(shares.row),
    )


def _region(recording: Recording, region: int) -> RegionJson | None:
    """None where it is not known where the buffer lies."""
    if region < 0:
        return None
    regions = recording.regions
    return {
        "index": int(region_numbers(recording)[region]),
        "kind": RegionKind(int(regions.kind[region])).label,
        "size_bytes": int(regions.size[region]),
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
    return record(
        PlannedAllocationJson,
        program,
        recording=program.id,
        kind=RegionKind(int(program.regions.kind[region])).label,
        size=int(program.regions.size[region]),
        buffers=[
            {"row": i, "name": rows.name[i], "op_name": rows.op_name[i], "size": int(rows.size[i])}
            for i in inside[:MAX_PLANNED_BUFFERS].tolist()
        ],
        buffers_total=len(inside),
    )
