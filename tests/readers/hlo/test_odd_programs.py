"""Old, unusual or incomplete programs: each is shown as far as possible, with a caveat."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest
from support.hand_built import ALLOC, FREE, MIB, Handmade, codes, names, read, two_halves
from support.profiles import answer_of_xprof

from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.questions.kinds import first_view as memory_viewer
from tb_memplugin.readers.hlo import read_hlo, recordings
from tb_memplugin.readers.hlo.module.tables import HloModule


def test_memory_spaces_are_recordings_of_their_own_on_one_axis() -> None:
    made = Handmade()
    first = made.instruction("first")
    made.instruction("last", [first])
    in_hbm, in_vmem = made.buffer(first, 2 * MIB), made.buffer(first, MIB, color=1)
    made.allocation((in_hbm, 0), size=2 * MIB)
    made.allocation((in_vmem, 0), size=MIB, color=1)
    made.trace((ALLOC, in_hbm.id), (ALLOC, in_vmem.id), (FREE, in_hbm.id), (FREE, in_vmem.id))
    hbm, vmem = read_hlo(made.data, source="handmade")
    assert (hbm.memory, peak(hbm).bytes, vmem.memory, peak(vmem).bytes) == ("HBM", 2 * MIB, "VMEM", MIB)
    assert hbm.length == vmem.length == 2


def test_scoped_vmem_is_found_as_xprof_finds_it(tmp_path: Path) -> None:
    made = Handmade()
    kernel = made.instruction("kernel", opcode="custom-call")
    made.instruction("last", [kernel])
    made.allocation((made.buffer(kernel, MIB, color=1), 0), size=MIB, color=1)
    config = b'{"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"5242880"}]}'
    made.computation.instructions[0].backend_config = config
    (vmem,) = read_hlo(made.data, source="handmade")
    assert vmem.program
    assert (vmem.program.scoped_bytes, vmem.program.scoped_instruction) == (5 * MIB, "kernel")
    pytest.importorskip("xprof")
    theirs = answer_of_xprof(made.data, tmp_path, space=1)
    assert (theirs["maxScopedVmemAllocationMib"], theirs["maxScopedVmemInstructionName"]) == (5, "kernel")


def test_names_that_are_not_utf8_are_shown_with_a_mark() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    made.computation.instructions[0].name = b"caf\xe9"
    made.computation.instructions[1].metadata.op_name = b"jit(f)/\xff\xfe"
    recording = read(made)
    assert names(recording) == ["caf\ufffd", "second"]
    assert recording.allocations.op_name[1] == "jit(f)/\ufffd\ufffd"
    assert "caf\ufffd".encode() in memory_viewer.first_view(recording)


def test_older_files_name_the_instruction_in_place_of_its_id() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    for buffer, name in ((first, b"first"), (second, b"second")):
        buffer.defined_at.ClearField("instruction_id")
        buffer.defined_at.instruction_name = name
    recording = read(made)
    assert names(recording) == ["first", "second"]
    assert recording.allocations.defined.tolist() == [0, 1]


def test_stacks_come_with_function_names_innermost_first() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    index = made.proto.hlo_module.stack_frame_index
    index.file_names.extend([b"train.py", b"model.py"])
    index.function_names.extend([b"main", b"attention"])
    index.file_locations.add(file_name_id=1, function_name_id=1, line=10)
    index.file_locations.add(file_name_id=2, function_name_id=2, line=20)
    index.stack_frames.add(file_location_id=1)
    index.stack_frames.add(file_location_id=2, parent_frame_id=1)
    made.computation.instructions[0].metadata.stack_frame_id = 2
    made.computation.instructions[1].metadata.source_file = b"old.py"
    made.computation.instructions[1].metadata.source_line = 7
    recording = read(made)
    stacks = [recording.stacks.frames(leaf) for leaf in recording.allocations.stack.tolist()]
    assert stacks == [[("attention", "model.py", 20), ("main", "train.py", 10)], [("", "old.py", 7)]]


def test_a_stack_that_runs_in_a_circle_ends() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    index = made.proto.hlo_module.stack_frame_index
    index.file_names.append(b"train.py")
    index.file_locations.add(file_name_id=1, function_name_id=9, line=1)
    index.stack_frames.add(file_location_id=1, parent_frame_id=2)
    index.stack_frames.add(file_location_id=1, parent_frame_id=1)
    made.computation.instructions[0].metadata.stack_frame_id = 2
    recording = read(made)
    assert recording.stacks.frames(int(recording.allocations.stack[0])) == [("", "train.py", 1)]


def test_a_buffer_of_a_missing_instruction_may_live_all_along() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    second.defined_at.instruction_id = 99
    recording = read(made)
    assert names(recording) == ["first", ""]
    assert usage(recording).live.tolist() == [6 * MIB] * 3
    (caveat,) = [caveat for caveat in recording.caveats if caveat.code == "unknown_instructions"]
    assert caveat.bytes == 3 * MIB


def test_a_buffer_that_is_placed_but_not_described_may_live_all_along() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    made.assignment.logical_buffers.remove(second)
    recording = read(made)
    assert usage(recording).live.tolist() == [6 * MIB] * 3
    (caveat,) = [caveat for caveat in recording.caveats if caveat.code == "unknown_buffers"]
    assert caveat.bytes == 3 * MIB


def test_without_a_schedule_instructions_run_as_they_are_listed() -> None:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    made.proto.hlo_module.ClearField("schedule")
    recording = read(made)
    assert "no_schedule" in codes(recording)
    assert recording.program
    assert [recording.program.name[p] for p in range(3)] == ["first", "second", "last"]
    assert usage(recording).live.tolist() == [3 * MIB, 6 * MIB, 6 * MIB]


def test_tables_are_released_once_the_data_flow_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: list[weakref.ref[HloModule]] = []

    def opened(*arguments: Any) -> HloModule:
        module = HloModule(*arguments)
        modules.append(weakref.ref(module))
        return module

    made, first, _ = two_halves()
    made.allocation((first, 0), size=3 * MIB)
    monkeypatch.setattr(recordings, "HloModule", opened)
    recording = read(made)
    program = recording.program
    assert program is not None and program.values is not None and program.fused is not None
    assert modules[0]() is not None
    program.values()
    assert modules[0]() is None, "the tables stay in memory"
    assert names(recording) == ["first"]
    assert len(program.fused().position) == 0
