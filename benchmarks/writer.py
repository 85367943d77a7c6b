"""A program and its buffer assignment as the HloProto that a compiler would write."""

from collections.abc import Iterator

from benchmarks.assignment import Assignment, EventKind, is_temporary
from benchmarks.program import Instruction
from benchmarks.shapes import Shape, tuple_proto
from tb_memplugin.protos import hlo_pb2

MODULE = "jit_train_step"
PROGRAM_ID = 1
ENTRY = 1  # id of the entry computation; fused ones follow

CALLERS = {
    "train_step": "",
    "loss": "train_step",
    "adam": "train_step",
    "layer": "loss",
    "attention": "layer",
    "mlp": "layer",
    "normalize": "layer",
}
LINES_PER_FUNCTION = 16
SOURCE = b"model/transformer.py"


class Writer:
    """A writer for one program and its buffer assignment."""

    def __init__(self, schedule: list[Instruction], plan: Assignment) -> None:
        self.schedule, self.plan = schedule, plan
        self.buffer_id: dict[int, int] = {}
        for position, owner in enumerate(plan.owner):
            if owner == position:
                self.buffer_id[position] = len(self.buffer_id)
        self._shapes: dict[Shape, bytes] = {}

    def shape(self, instruction: Instruction) -> bytes:
        if instruction.shape is None:
            return tuple_proto([s for p in instruction.operands if (s := self.schedule[p].shape)]).SerializeToString()
        if instruction.shape not in self._shapes:
            self._shapes[instruction.shape] = instruction.shape.proto().SerializeToString()
        return self._shapes[instruction.shape]

    def module(self) -> hlo_pb2.HloModuleProto:
        module = hlo_pb2.HloModuleProto(
            name=MODULE.encode(), entry_computation_name=b"main", id=PROGRAM_ID, entry_computation_id=ENTRY
        )
        entry = module.computations.add(name=b"main", id=ENTRY, root_id=_id(ENTRY, len(self.schedule) - 1))
        arguments: dict[int, int] = {}
        for position, instruction in enumerate(self.schedule):
            proto = entry.instructions.add(
                id=_id(ENTRY, position),
                name=instruction.name.encode(),
                opcode=instruction.opcode.encode(),
                shape=self.shape(instruction),
                operand_ids=[_id(ENTRY, operand) for operand in instruction.operands],
                metadata=_metadata(instruction, position),
            )
            if instruction.opcode == "parameter":
                proto.parameter_number = arguments[position] = len(arguments)
            elif instruction.opcode == "fusion":
                self._fuse(module, proto, len(module.computations) + ENTRY)
        module.schedule.sequences[ENTRY].instruction_ids.extend(i.id for i in entry.instructions)
        for index, result in enumerate(self.schedule[-1].operands):
            if (argument := self.schedule[result].donated) >= 0:
                module.input_output_alias.entries.add(
                    output_shape_index=[index], parameter_number=arguments[argument], kind=1
                )
        module.stack_frame_index.CopyFrom(_stack_frames())
        return module

    def _fuse(self, module: hlo_pb2.HloModuleProto, fusion: hlo_pb2.HloInstructionProto, computation: int) -> None:
        """Add the body of a fusion: its operands as parameters, and two operations on them."""
        fusion.called_computation_ids.append(computation)
        operands = len(fusion.operand_ids)
        body = module.computations.add(
            name=b"fused_computation.%d" % computation,
            id=computation,
            root_id=_id(computation, operands + 1),
            is_fusion_computation=True,
        )
        for number in range(operands):
            body.instructions.add(
                id=_id(computation, number),
                name=b"param_%d.%d" % (number, computation),
                opcode=b"parameter",
                shape=fusion.shape,
                parameter_number=number,
            )
        for number, opcode in ((operands, b"multiply"), (operands + 1, b"add")):
            body.instructions.add(
                id=_id(computation, number),
                name=b"%s.%d" % (opcode, computation),
                opcode=opcode,
                shape=fusion.shape,
                operand_ids=[_id(computation, number - 1), _id(computation, 0)],
                metadata=fusion.metadata,
            )

    def buffers(self) -> hlo_pb2.BufferAssignmentProto:
        assignment = hlo_pb2.BufferAssignmentProto()
        for position, buffer in self.buffer_id.items():
            at = hlo_pb2.LogicalBufferProto.Location(instruction_id=_id(ENTRY, position))
            assignment.logical_buffers.add(id=buffer, size=self.plan.size[position], defined_at=at)
        for position, owner in enumerate(self.plan.owner):
            if owner != position:
                alias = assignment.buffer_aliases.add(source_buffer_id=self.buffer_id[owner])
                alias.location.instruction_id = _id(ENTRY, position)
        for index, result in enumerate(self.schedule[-1].operands):
            alias = assignment.buffer_aliases.add(source_buffer_id=self.buffer_id[self.plan.owner[result]])
            alias.location.instruction_id = _id(ENTRY, len(self.schedule) - 1)
            alias.location.shape_index.append(index)
        for index, allocation in enumerate(self._allocations()):
            allocation.index = index
            assignment.buffer_allocations.append(allocation)
        trace = assignment.heap_simulator_traces.add(
            whole_module_simulation=True, buffer_allocation_index=len(assignment.buffer_allocations) - 1
        )
        for kind, position in self.plan.events:
            event = trace.events.add(
                kind=hlo_pb2.HeapSimulatorTrace.Event.Kind.ValueType(kind),
                buffer_id=self.buffer_id[position],
                computation_name=b"main",
                instruction_name=self.schedule[position].name.encode(),
            )
            if kind == EventKind.SHARE_WITH:
                event.share_with_canonical_id = self.buffer_id[self.plan.canonical[position]]
        return assignment

    def _allocations(self) -> Iterator[hlo_pb2.BufferAllocationProto]:
        """Yield one allocation per persistent buffer, and one for all temporaries."""
        replaced_by = {i.donated: position for position, i in enumerate(self.schedule) if i.donated >= 0}
        arguments = 0
        for position, instruction in enumerate(self.schedule):
            if is_temporary(instruction) or instruction.donated >= 0 or position not in self.buffer_id:
                continue
            allocation = hlo_pb2.BufferAllocationProto(size=self.plan.size[position])
            self._place(allocation, position, 0)
            if instruction.opcode == "parameter":
                allocation.is_entry_computation_parameter = True
                allocation.parameter_number = arguments
                allocation.maybe_live_out = True
                self._place(allocation, replaced_by[position], 0)
                arguments += 1
            allocation.is_constant = instruction.opcode == "constant"
            allocation.is_tuple = instruction.opcode == "tuple"
            allocation.maybe_live_out |= instruction.returned
            yield allocation
        temporaries = hlo_pb2.BufferAllocationProto(size=self.plan.heap_size)
        for position, offset in self.plan.offset.items():
            self._place(temporaries, position, offset)
        yield temporaries

    def _place(self, allocation: hlo_pb2.BufferAllocationProto, position: int, offset: int) -> None:
        allocation.assigned.add(
            logical_buffer_id=self.buffer_id[position], offset=offset, size=self.plan.size[position]
        )


def _id(computation: int, position: int) -> int:
    return computation << 32 | position


def _line(position: int) -> int:
    """Return the line within its function that an instruction comes from."""
    return position * 7 % LINES_PER_FUNCTION


def _metadata(instruction: Instruction, position: int) -> hlo_pb2.OpMetadata:
    if not instruction.op_name or instruction.opcode == "parameter":
        return hlo_pb2.OpMetadata(op_name=instruction.op_name.encode())
    function = list(CALLERS).index(instruction.function)
    frame = function * LINES_PER_FUNCTION + _line(position)
    return hlo_pb2.OpMetadata(
        op_name=instruction.op_name.encode(),
        source_file=SOURCE,
        source_line=frame + 1,
        stack_frame_id=frame + 1,
    )


def _stack_frames() -> hlo_pb2.StackFrameIndexProto:
    """Return a frame for every line of every function, called from its caller's first line. Ids start at 1."""
    functions = list(CALLERS)
    index = hlo_pb2.StackFrameIndexProto(file_names=[SOURCE], function_names=[f.encode() for f in functions])
    for number, function in enumerate(functions):
        caller = CALLERS[function]
        parent = functions.index(caller) * LINES_PER_FUNCTION + 1 if caller else 0
        for _ in range(LINES_PER_FUNCTION):
            line = len(index.file_locations) + 1
            index.file_locations.add(file_name_id=1, function_name_id=number + 1, line=line, column=4)
            index.stack_frames.add(file_location_id=line, parent_frame_id=parent)
    return index
