"""Modules as text: the computations, instructions, schedule and call stacks of `*after_optimizations.txt`."""

import re
from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush

from tb_memplugin.protos.hlo_pb2 import (
    HloComputationProto,
    HloInstructionProto,
    HloModuleProto,
    ShapeProto,
    StackFrameIndexProto,
)
from tb_memplugin.readers.hlo_text.shape import parse_shape

NAME = r"[\w.$:<>/@+~-]+"
COMPUTATION = re.compile(rf"(ENTRY )?%?({NAME}) (?:\(.*)?\{{(?:, .*)?$")
INSTRUCTION = re.compile(rf"\s+(ROOT )?%?({NAME}) = ")
OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
ATTRIBUTES = re.compile(r"\)(?:$|, [a-z_-]+=)")
# XLA prints the halves of an asynchronous operation as `fusion-start` and `fusion-done`, without the computation that
# has the operation alone. These halves are opcodes of their own:
HALVES = re.compile(r"(?!async|all-gather|all-reduce|collective-permute|copy|send|recv)[a-z-]+-(start|update|done)")
OPERAND = re.compile(rf"(?:^|[ (])%?({NAME}(?:#\d{{1,6}})?)(?=,|$)")  # `fusion.7#1`: an element of its result
CALLED = re.compile(
    r", (?:calls|to_apply|body|condition|true_computation|false_computation|branch_computations|called_computations)="
    rf"(?:%?({NAME})|\{{([^{{}}]*)\}})"
)
BODY = re.compile(rf", body=%?({NAME})")
CONDITION = re.compile(rf", condition=%?({NAME})")
OP_NAME = re.compile(r'[{ ]op_name="((?:[^"\\]|\\.)*)"')
SOURCE = re.compile(r'[{ ]source_file="((?:[^"\\]|\\.)*)"(?: source_line=(\d{1,9}))?')
FRAME = re.compile(r"[{ ]stack_frame_id=(\d{1,9})[ }]")
COUNT = re.compile(r"/\*index=\d{1,9}\*/")  # a comment before every fifth element or operand
INDEX = re.compile(r", index=(\d{1,9})")
ALIASING = re.compile(r"\{([\d, ]*)\}: \((\d{1,9}), \{([\d, ]*)\}")
ALIAS = re.compile(r"\{([\d, ]*)\}: \((\d{1,9}), \{([\d, ]*)\}(?:, (may|must)-alias)?\)")
TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
ROW = re.compile(r'\d+ (?:"(.*)"|\{(.*)\})$')
FIELD = re.compile(r"\b([a-z_]{1,40})=(\d{1,9})")
MODULE_NAME = re.compile(rf"HloModule ({NAME})")
PARTITIONS, REPLICAS = re.compile(r", num_partitions=(\d{1,9})"), re.compile(r", replica_count=(\d{1,9})")


def numbers(text: str) -> list[int]:
    """Return the numbers of a shape index, as in `1,0`."""
    return [int(part) for part in text.split(",") if part.strip().isdecimal() and len(part) < 10]


class ModuleText:
    """A module that is read from its text line by line."""

    def __init__(self, module: HloModuleProto) -> None:
        self.module = module
        self.instructions: dict[str, HloInstructionProto] = {}
        self._operands: list[tuple[HloInstructionProto, list[str]]] = []
        self._calls: list[tuple[HloInstructionProto, list[str]]] = []
        self._next_id = 1
        self._asynchronous: list[tuple[HloInstructionProto, str]] = []  # starts, and what they start
        self.is_scheduled = False
        self._sequences: dict[int, list[HloInstructionProto]] = {}  # by the computation's id
        self._elements: dict[str, list[HloInstructionProto]] = defaultdict(list)  # by the instruction that has them

    def read(self, text: str) -> None:
        """Read the text of a module."""
        head, _, rest = text.partition("\n")
        self._read_head(head)
        rest = COUNT.sub("", rest)
        table, computation = "", None
        for line in rest.split("\n"):
            if line in TABLES:
                table = line
            elif table and (row := ROW.match(line)):
                _add_row(self.module.stack_frame_index, table, row[1], row[2])
            elif line.startswith((" ", "\t")):
                if computation is not None and (found := INSTRUCTION.match(line)):
                    self._read_instruction(computation, found, line)
            elif found := COMPUTATION.match(line):
                computation = self.add_computation(found[2], is_entry=bool(found[1]))
        self.is_scheduled = "is_scheduled=true" in head
        self._resolve()
        for instruction, opcode in self._asynchronous:
            self._wrap(instruction, opcode)
        frames = self.module.stack_frame_index.stack_frames
        if frames and frames[0].parent_frame_id == 1:  # XLA prints the number of the parent plus one
            for frame in frames:
                frame.parent_frame_id -= 1

    def _read_head(self, head: str) -> None:
        name = MODULE_NAME.match(head)
        self.module.name = name[1].encode() if name else b""
        aliases = head.partition("input_output_alias={ ")[2].partition(" }, ")[0]
        for output, parameter, index, kind in ALIAS.findall(aliases):
            entry = self.module.input_output_alias.entries.add(
                parameter_number=int(parameter), kind=2 if kind == "must" else 1
            )
            entry.output_shape_index.extend(numbers(output))
            entry.parameter_shape_index.extend(numbers(index))
        replicas, partitions = REPLICAS.search(head), PARTITIONS.search(head)
        self.module.device_assignment.replica_count = int(replicas[1]) if replicas else 1
        self.module.device_assignment.computation_count = int(partitions[1]) if partitions else 1

    def add_computation(self, name: str, *, is_entry: bool) -> HloComputationProto:
        """Add an empty computation."""
        computation = self.module.computations.add(name=name.encode(), id=len(self.module.computations) + 1)
        self._sequences[computation.id] = []
        if is_entry:
            self.module.entry_computation_id = computation.id
            self.module.entry_computation_name = name.encode()
        return computation

    def _read_instruction(self, computation: HloComputationProto, found: re.Match[str], line: str) -> None:
        if (opcode := OPCODE.search(line, found.end())) is None:
            return
        end = ATTRIBUTES.search(line, opcode.end())
        inside = line[opcode.end() : end.start() if end else len(line)]
        attributes = line[end.start() + 1 :] if end else ""
        operands = OPERAND.findall(inside) if opcode[1] not in {"parameter", "constant"} else []
        for operand in operands:
            if "#" in operand and operand not in self.instructions:
                self._add_element(computation, operand)
        shape = parse_shape(line[found.end() : opcode.start()])
        half = HALVES.fullmatch(opcode[1])
        instruction = self.add_instruction(computation, found[2], f"async-{half[1]}" if half else opcode[1], shape)
        if half and half[1] == "start":
            self._asynchronous.append((instruction, opcode[1].removesuffix("-start")))
        if found[1]:
            computation.root_id = instruction.id
        if opcode[1] == "parameter":
            instruction.parameter_number = next(iter(numbers(inside)), 0)
        if operands:
            self._operands.append((instruction, operands))
        if called := _called(attributes, opcode[1]):
            self._calls.append((instruction, called))
        _read_attributes(instruction, attributes)

    def add_instruction(
        self, computation: HloComputationProto, name: str, opcode: str, shape: bytes
    ) -> HloInstructionProto:
        """Add an instruction at the end of a computation."""
        instruction = computation.instructions.add(
            name=name.encode(), opcode=opcode.encode(), shape=shape, id=self._next_id
        )
        self._next_id += 1  # names repeat in damaged texts
        self.instructions[name] = instruction
        self._sequences[computation.id].append(instruction)
        return instruction

    def _add_element(self, computation: HloComputationProto, operand: str) -> None:
        """Add the get-tuple-element that XLA prints as `fusion.7#1` only, before its first user."""
        name, _, index = operand.partition("#")
        if (whole := self.instructions.get(name)) is None:
            return
        elements = ShapeProto.FromString(whole.shape).tuple_shapes
        shape = elements[int(index)].SerializeToString() if int(index) < len(elements) else b""
        element = self.add_instruction(computation, operand, "get-tuple-element", shape)
        element.tuple_index = int(index)
        element.operand_ids.append(whole.id)
        self._elements[name].append(element)

    def order_elements(self, order: Iterable[str]) -> None:
        """Name and schedule the added get-tuple-elements by the order of all instructions in the live ranges.

        Names that the module lacks are theirs: at each, the element with the earliest user among those that exist.
        """
        waiting: list[tuple[int, str]] = []
        position: dict[str, int] = {}
        by_text = {element.name.decode(): element for elements in self._elements.values() for element in elements}
        for at, name in enumerate(order):
            position[name] = at
            for element in self._elements.get(name, ()):
                heappush(waiting, (element.id, element.name.decode()))
            if name not in self.instructions and waiting:
                text = heappop(waiting)[1]
                by_text[text].name = name.encode()
        for sequence in self._sequences.values():
            if all(instruction.name.decode() in position for instruction in sequence):
                sequence.sort(key=lambda instruction: position[instruction.name.decode()])

    def write_schedule(self) -> None:
        """Write the schedule of a module that has one."""
        for computation in self.module.computations if self.is_scheduled else ():
            if not computation.is_fusion_computation:
                ids = [instruction.id for instruction in self._sequences[computation.id]]
                self.module.schedule.sequences[computation.id].instruction_ids.extend(ids)

    def _wrap(self, start: HloInstructionProto, opcode: str) -> None:
        """Add the computation of an asynchronous operation, which contains the operation alone."""
        parts = ShapeProto.FromString(start.shape).tuple_shapes  # (operands, result, context)
        if len(parts) < 2:
            return
        name = start.name.decode()
        computation = self.add_computation(f"{name}.async", is_entry=False)
        operands = []
        for number, shape in enumerate(parts[0].tuple_shapes):
            parameter = self.add_instruction(
                computation, f"{name}.async.{number}", "parameter", shape.SerializeToString()
            )
            parameter.parameter_number = number
            operands.append(parameter.id)
        operation = self.add_instruction(computation, f"{name}.async.{opcode}", opcode, parts[1].SerializeToString())
        operation.operand_ids.extend(operands)
        operation.called_computation_ids.extend(start.called_computation_ids)
        operation.metadata.CopyFrom(start.metadata)
        computation.root_id = operation.id
        for called in operation.called_computation_ids:
            self.module.computations[called - 1].is_fusion_computation = opcode == "fusion"
        start.called_computation_ids[:] = [computation.id]

    def _resolve(self) -> None:
        """Number operands and called computations, which may follow the line that names them."""
        computations = {computation.name.decode(): computation for computation in self.module.computations}
        for instruction, operands in self._operands:
            known = (self.instructions.get(name) for name in operands)
            instruction.operand_ids.extend(operand.id for operand in known if operand is not None)
        for instruction, names in self._calls:
            called = [computation for name in names if (computation := computations.get(name))]
            instruction.called_computation_ids.extend(computation.id for computation in called)
            if instruction.opcode == b"fusion":
                for computation in called:
                    computation.is_fusion_computation = True


def _called(attributes: str, opcode: str) -> list[str]:
    """Return the computations that an instruction calls, in a proto's order: a while's body, then its condition."""
    if opcode == "while":
        return [found[1] for pattern in (BODY, CONDITION) if (found := pattern.search(attributes))]
    called = []
    for one, several in CALLED.findall(attributes):
        called += [one] if one else [name.strip().removeprefix("%") for name in several.split(",")]
    return called


def _read_attributes(instruction: HloInstructionProto, attributes: str) -> None:
    if instruction.opcode == b"get-tuple-element" and (index := INDEX.search(attributes)):
        instruction.tuple_index = int(index[1])
    if instruction.opcode in {b"fusion", b"custom-call"}:
        aliasing = attributes.partition("output_to_operand_aliasing={")[2].partition("}, ")[0]
        for output, operand, index_in in ALIASING.findall(aliasing):
            alias = instruction.output_operand_aliasing.add(operand_index=int(operand))
            alias.output_shape_index.extend(numbers(output))
            alias.operand_shape_index.extend(numbers(index_in))
    metadata = attributes.partition(", metadata={")[2]
    if config := attributes.partition(", backend_config=")[2]:
        instruction.backend_config = config.encode()
    if not metadata:
        return
    metadata = "{" + metadata
    if op_name := OP_NAME.search(metadata):
        instruction.metadata.op_name = _unescaped(op_name[1]).encode()
    if source := SOURCE.search(metadata):
        instruction.metadata.source_file = _unescaped(source[1]).encode()
        instruction.metadata.source_line = int(source[2] or 0)
    if frame := FRAME.search(metadata):
        instruction.metadata.stack_frame_id = int(frame[1])


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def _add_row(index: StackFrameIndexProto, table: str, text: str | None, fields: str | None) -> None:
    """Add a row of a table of call stacks."""
    values = {name: int(value) for name, value in FIELD.findall(fields or "")}
    if table == "FileNames":
        index.file_names.append(_unescaped(text or "").encode())
    elif table == "FunctionNames":
        index.function_names.append(_unescaped(text or "").encode())
    elif table == "FileLocations":
        wanted = ("file_name_id", "function_name_id", "line", "column")
        index.file_locations.add(**{name: values[name] for name in wanted if name in values})
    else:
        index.stack_frames.add(
            **{name: values[name] for name in ("file_location_id", "parent_frame_id") if name in values}
        )
