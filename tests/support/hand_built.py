"""HloProtos built by hand: a schedule of plain instructions, with the addresses and lifetimes of their buffers."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import (
    BufferAllocationProto,
    HeapSimulatorTrace,
    HloProto,
    LayoutProto,
    LogicalBufferProto,
    ShapeProto,
)
from tb_memplugin.readers.hlo import read_hlo

F32, TUPLE = 11, 13
ALLOC = HeapSimulatorTrace.Event.ALLOC
FREE = HeapSimulatorTrace.Event.FREE
SHARE_WITH = HeapSimulatorTrace.Event.SHARE_WITH
MIB = 2**20


def f32(*dimensions: int) -> ShapeProto:
    layout = LayoutProto(minor_to_major=range(len(dimensions) - 1, -1, -1))
    return ShapeProto(element_type=F32, dimensions=dimensions, layout=layout)


def tuple_of(*shapes: ShapeProto) -> ShapeProto:
    return ShapeProto(element_type=TUPLE, tuple_shapes=shapes)


class Handmade:
    """Build one scheduled computation. Ids of instructions count from 1, those of buffers from `first_buffer`."""

    def __init__(self, first_buffer: int = 1) -> None:
        self.proto = HloProto()
        module = self.proto.hlo_module
        module.name, module.entry_computation_name, module.entry_computation_id = b"jit_handmade", b"main", 1
        self.computation = module.computations.add(id=1, name=b"main")
        self.sequence = module.schedule.sequences[1].instruction_ids
        self.assignment = self.proto.buffer_assignment
        self.next_buffer = first_buffer

    @property
    def data(self) -> bytes:
        return self.proto.SerializeToString()

    def instruction(
        self, name: str, operands: Sequence[int] = (), shape: ShapeProto | None = None, opcode: str = "fusion"
    ) -> int:
        """Add the next instruction of the schedule and return its id."""
        number = len(self.computation.instructions) + 1
        made = self.computation.instructions.add(
            id=number, name=name.encode(), opcode=opcode.encode(), operand_ids=operands
        )
        made.shape = (shape or f32(MIB // 4)).SerializeToString()
        self.computation.root_id = number
        self.sequence.append(number)
        return number

    def buffer(self, instruction: int, size: int, index: Sequence[int] = (), color: int = 0) -> LogicalBufferProto:
        made = self.assignment.logical_buffers.add(id=self.next_buffer, size=size, color=color)
        made.defined_at.instruction_id = instruction
        made.defined_at.shape_index.extend(index)
        self.next_buffer += 1
        return made

    def allocation(self, *placed: tuple[LogicalBufferProto, int], size: int, color: int = 0) -> BufferAllocationProto:
        """Add an allocation of buffers at their offsets; the caller sets its kind."""
        made = self.assignment.buffer_allocations.add(
            index=len(self.assignment.buffer_allocations), size=size, color=color
        )
        for buffer, offset in placed:
            made.assigned.add(logical_buffer_id=buffer.id, offset=offset, size=buffer.size)
        return made

    def trace(self, *events: tuple[int, int] | tuple[int, int, int]) -> HeapSimulatorTrace:
        """Add events as (kind, buffer id) or (SHARE_WITH, buffer id, canonical id)."""
        names = {i.id: i.name for i in self.computation.instructions}
        defined = {b.id: names.get(b.defined_at.instruction_id, b"") for b in self.assignment.logical_buffers}
        made = self.assignment.heap_simulator_traces.add()
        for kind, buffer, *canonical in events:
            event = made.events.add(buffer_id=buffer)
            event.kind = HeapSimulatorTrace.Event.Kind.ValueType(kind)
            event.computation_name, event.instruction_name = b"main", defined.get(buffer, b"")
            event.share_with_canonical_id = canonical[0] if canonical else 0
        return made


def read(made: Handmade) -> Recording:
    """Return the recording of a program with one memory space."""
    (recording,) = read_hlo(made.data, source="handmade")
    return recording


def codes(recording: Recording) -> set[str]:
    return {caveat.code for caveat in recording.caveats}


def names(recording: Recording) -> list[str]:
    return [recording.allocations.name[row] for row in range(len(recording.allocations))]


def two_halves() -> tuple[Handmade, LogicalBufferProto, LogicalBufferProto]:
    """Build two buffers of 3 MiB that are live at once."""
    made = Handmade()
    first = made.instruction("first")
    second = made.instruction("second")
    made.instruction("last", [first, second])
    return made, made.buffer(first, 3 * MIB), made.buffer(second, 3 * MIB)
