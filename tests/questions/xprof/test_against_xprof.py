"""Our answers against XProf 2.24.2's, in bytes. Each difference names the XProf defect and the correct figure."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.aot import PROGRAMS, ahead_of_time
from support.profiles import Compiled, answer_of_xprof, compiled_programs
from support.servers import DATA

from tb_memplugin.protos.hlo_pb2 import BufferAllocationProto, HloProto, ShapeProto
from tb_memplugin.questions.xprof import memory_viewer
from tb_memplugin.readers.hlo import read_hlo

MIB = 2**20
ANSWERS = DATA / "xprof_2.24.2_answers"
TITLES = ("moduleName", "entryComputationName")
TOTALS = (
    "totalBufferAllocationMib",
    "indefiniteBufferAllocationMib",
    "entryComputationParametersMib",
    "maybeLiveOutMib",
)
PEAK, UNPADDED, BUFFERS = "peakHeapMib", "peakUnpaddedHeapMib", "maxHeap"

# The defect in XProf's answer, and the fields that it affects.
PADDING = "Adds parameters, outputs and constants with their padding to what is said to be without padding."
HELD_ELSEWHERE = "Lists what is held all along only in memory space 0: elsewhere a peak is made of nothing."
NO_TRACE = "Replays a trace or nothing: where the compiler left none, as if the program had no temporaries."
DEFECTS = {PADDING: {UNPADDED}, HELD_ELSEWHERE: {BUFFERS}, NO_TRACE: {PEAK, UNPADDED, BUFFERS}}

EXPLAINED = {
    ("xprof_tpu_inference_2_old", "jit_broadcast_in_dim(11287434908481120160)", 0): PADDING,
    ("xprof_tpu_inference_2_old", "jit_convert_element_type(2433868464432466958)", 0): PADDING,
    ("xprof_tpu_inference_2_old", "jit_f(12190760917235803885)", 0): PADDING,
    ("xprof_tpu_inference_2_old", "jit_f(12190760917235803885)", 5): HELD_ELSEWHERE,
    ("hlo", "tracelens_jit__multi_slice", 0): NO_TRACE,
}

Json = dict[str, Any]
Buffers = Counter[tuple[int, str, int]]


class Case(NamedTuple):
    program: Compiled
    space: int

    @property
    def defect(self) -> str | None:
        return EXPLAINED.get((self.program.profile, self.program.title, self.space))

    def __str__(self) -> str:
        return f"{self.program}-space{self.space}"


CASES = [
    Case(program, space)
    for program in compiled_programs()
    for space in sorted({a.color for a in program.proto.buffer_assignment.buffer_allocations})
]
STORED = sorted(path for path in ANSWERS.glob("*/memory_viewer.*.json.gz") if "NO_MODULE" not in path.name)


def ours(data: bytes, space: int) -> Json:
    answer: Json = json.loads(json.dumps(memory_viewer.memory_viewer(read_hlo(data, source="test"), space)))
    return answer


def bytes_of(mib: float) -> int:
    """Convert MiB to bytes: every figure is a whole number of bytes, and exact as MiB."""
    assert mib * MIB == int(mib * MIB)
    return int(mib * MIB)


def buffers(answer: Json) -> Buffers:
    """Return (id, instruction, bytes) of each buffer at the peak; the small ones, which are merged, have id -1."""
    return Counter(
        (b.get("logicalBufferId", 0), b.get("instructionName", ""), bytes_of(b["logicalBufferSizeMib"]))
        for b in answer.get(BUFFERS, [])
    )


def differing(a: Json, b: Json) -> set[str]:
    figures = {f for f in (*TOTALS, PEAK, UNPADDED) if bytes_of(a.get(f, 0)) != bytes_of(b.get(f, 0))}
    return figures | {f for f in TITLES if a[f] != b[f]} | ({BUFFERS} if buffers(a) != buffers(b) else set())


def check(case: Case, theirs: Json) -> None:
    """Check that the answers agree, or that they differ exactly by the named defect and ours is right."""
    answer = ours(case.program.data, case.space)
    assert differing(theirs, answer) == (DEFECTS[case.defect] if case.defect else set())
    assert sum(size for _, _, size in buffers(answer).elements()) == bytes_of(answer.get(PEAK, 0))
    if case.defect == PADDING:
        assert bytes_of(answer[UNPADDED]) == unpadded_at_peak(case.program.proto, buffers_by_hand(case, answer))
    elif case.defect == HELD_ELSEWHERE:
        assert buffers(answer) == held_by_hand(case.program.proto, case.space)
    elif case.defect == NO_TRACE:
        assert bytes_of(answer[PEAK]) - bytes_of(theirs[PEAK]) == temporaries_by_hand(case)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_stored_answers(path: Path) -> None:
    title, space = path.name.removeprefix("memory_viewer.").removesuffix(".json.gz").rsplit(".space", 1)
    (case,) = (
        case
        for case in CASES
        if (case.program.profile, case.program.title, case.space) == (path.parent.name, title, int(space))
    )
    check(case, json.loads(gzip.decompress(path.read_bytes())))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_installed_xprof(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    check(case, answer_of_xprof(case.program.data, tmp_path, case.space))


@pytest.mark.parametrize("name", PROGRAMS)
def test_installed_xprof_on_programs_compiled_now(name: str, tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    data = ahead_of_time(name).traced
    assert differing(answer_of_xprof(data, tmp_path), ours(data, 0)) == set()


def test_a_space_that_the_program_does_not_use_gives_its_names(tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    data = compiled_programs()[0].data
    assert ours(data, 3) == answer_of_xprof(data, tmp_path, 3)
    assert set(ours(data, 3)) == set(TITLES)


def test_every_explanation_is_needed() -> None:
    if not STORED:
        pytest.skip("needs the profiles beside the repository")
    assert {(c.program.profile, c.program.title, c.space) for c in CASES if c.defect} == set(EXPLAINED)


# The correct figures, computed from the messages.


def is_held(allocation: BufferAllocationProto) -> bool:
    return allocation.is_entry_computation_parameter or allocation.maybe_live_out or allocation.is_constant


def held_by_hand(proto: HloProto, space: int) -> Buffers:
    """Return the largest buffer of each persistent allocation."""
    found: Buffers = Counter()
    name = names(proto)
    for allocation in proto.buffer_assignment.buffer_allocations:
        if allocation.color == space and is_held(allocation):
            largest = max(allocation.assigned, key=lambda placed: placed.size)
            found[(largest.logical_buffer_id, name[largest.logical_buffer_id], largest.size)] += 1
    return found


def temporaries_by_hand(case: Case) -> int:
    """Return the buffers that XProf omits: temporaries that fill their allocation and are all live at once."""
    (temporary,) = (a for a in case.program.proto.buffer_assignment.buffer_allocations if not is_held(a))
    assert sum(placed.size for placed in temporary.assigned) == temporary.size
    return temporary.size


def buffers_by_hand(case: Case, answer: Json) -> set[int]:
    """Return the logical buffers at the peak: persistent ones, and those between ALLOC and FREE."""
    proto = case.program.proto
    held = {
        max(a.assigned, key=lambda placed: placed.size).logical_buffer_id
        for a in proto.buffer_assignment.buffer_allocations
        if a.color == case.space and is_held(a)
    }
    color = {b.id: b.color for b in proto.buffer_assignment.logical_buffers}
    size = {b.id: b.size for b in proto.buffer_assignment.logical_buffers}
    live, most = set[int](), set[int]()
    for trace in proto.buffer_assignment.heap_simulator_traces:
        for event in trace.events:
            if color[event.buffer_id] == case.space:
                (live.discard if event.kind == event.FREE else live.add)(event.buffer_id)
                most = max(most, set(live), key=lambda buffers: sum(size[b] for b in buffers))
    assert sum(size[b] for b in held | most) == bytes_of(answer[PEAK])
    return held | most


def unpadded_at_peak(proto: HloProto, live: set[int]) -> int:
    """Return the elements times the bytes of one; pointers for tuples."""
    instructions = {i.id: i for c in proto.hlo_module.computations for i in c.instructions}
    total = 0
    for buffer in proto.buffer_assignment.logical_buffers:
        if buffer.id in live:
            shape = ShapeProto.FromString(instructions[buffer.defined_at.instruction_id].shape)
            for index in buffer.defined_at.shape_index:
                shape = shape.tuple_shapes[index]
            elements = 1
            for dimension in shape.dimensions:
                elements *= dimension
            width = {11: 4, 16: 2, 4: 4, 8: 4, 3: 2}
            total += 8 * len(shape.tuple_shapes) if shape.tuple_shapes else elements * width[shape.element_type]
    return total


def names(proto: HloProto) -> dict[int, str]:
    """Return each logical buffer's defining instruction, and its shape index in the result."""
    instructions = {i.id: i.name.decode() for c in proto.hlo_module.computations for i in c.instructions}
    return {
        b.id: instructions[b.defined_at.instruction_id]
        + ("{" + ",".join(map(str, b.defined_at.shape_index)) + "}" if b.defined_at.shape_index else "")
        for b in proto.buffer_assignment.logical_buffers
    }
