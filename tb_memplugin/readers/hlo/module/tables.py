"""Tables of an HloProto, with ids resolved to rows."""

import numpy as np

from tb_memplugin.errors import InputError, NoBufferAssignmentError
from tb_memplugin.model.arrays import I32, Mask, marked
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.text import Text, TextSource
from tb_memplugin.native.charges import Charges
from tb_memplugin.native.hlo.shape_types import MAX_DEPTH
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import intern
from tb_memplugin.protos.hlo_fields import HloComputationProto, HloInstructionProto, HloProto, OpMetadata
from tb_memplugin.readers.common.budget import BudgetShare, ReadBudget, at_once
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.common.rows import IdIndex
from tb_memplugin.readers.hlo.module.columns import Columns, ListColumns, Lists, ModuleTexts
from tb_memplugin.readers.hlo.module.shapes import ShapeTable

COMPUTATIONS = "hlo_module.computations"
INSTRUCTIONS = f"{COMPUTATIONS}.instructions"
CONFIGS = f"{INSTRUCTIONS}.backend_config"
BUFFERS = "buffer_assignment.logical_buffers"
ALLOCATIONS = "buffer_assignment.buffer_allocations"
TRACES = "buffer_assignment.heap_simulator_traces"

# Most instructions are inside fusions, which define no buffers. So computations are located first, and only those that
# may define buffers are parsed. Aliases follow from the instructions, and an event's names from its buffer.
MODULE = Plan(HloProto, skip=("buffer_assignment", INSTRUCTIONS, f"{COMPUTATIONS}.name"), located=(COMPUTATIONS,))
ASSIGNMENT = Plan(
    HloProto,
    skip=(
        "hlo_module",
        f"{BUFFERS}.size",
        f"{BUFFERS}.color",
        "buffer_assignment.buffer_aliases",
        f"{TRACES}.events.computation_name",
        f"{TRACES}.events.instruction_name",
        f"{ALLOCATIONS}.parameter_number",
        f"{ALLOCATIONS}.parameter_shape_index",
    ),
    sparse=(f"{BUFFERS}.defined_at.instruction_name", f"{TRACES}.events.share_with_canonical_id"),
)
LARGE_BYTES = 8 << 20  # of a program that is scanned by two threads: starting one takes as long as some 100 KB
OF_COMPUTATIONS = tuple(name for name in HloComputationProto.names if name != "instructions")
# Texts are most of an instruction, and few questions need those of all instructions.
TEXTS = ("name", "metadata.op_name", "metadata.source_file", "metadata.source_line")
PARSED = Plan(
    HloComputationProto,
    skip=(
        *OF_COMPUTATIONS,
        *(f"instructions.{name}" for name in (*TEXTS, "metadata.op_type", "output_operand_aliasing")),
    ),
    located=("instructions",),
    interned=("instructions.opcode", "instructions.shape"),
    sparse=tuple(f"instructions.{name}" for name in ("backend_config", "parameter_number", "tuple_index")),
)
DETAILS = Plan(
    HloInstructionProto,
    skip=(
        *(name for name in HloInstructionProto.names if name not in {text.partition(".")[0] for text in TEXTS}),
        *(f"metadata.{name}" for name in OpMetadata.names if f"metadata.{name}" not in TEXTS),
    ),
)
NAME = Plan(HloComputationProto, skip=(*(name for name in OF_COMPUTATIONS if name != "name"), "instructions"))

# Two bytes of a serialized shape may become a protobuf object of this size.
OBJECT_BYTES = 48


class HloModule(ModuleTexts):
    """The tables of an HloProto, located but not interpreted.

    Raises InputError where the bytes are damaged or lack a compiled program with a buffer assignment.
    """

    def __init__(self, data: bytes | memoryview, source: str, budget: ReadBudget | None = None) -> None:
        """`budget`: of the program's file; None where these bytes are all of it."""
        budget = budget or ReadBudget(data, source)
        try:
            self.tables, contents = _scanned(data, budget)
        except ValueError as error:
            problem = f"the compiled program is damaged ({error})"
            raise InputError(problem, source, "copy the file again, or profile again") from error
        super().__init__(
            data,
            budget,
            Columns(self.tables[COMPUTATIONS], data, NAME, budget),
            Columns(contents["instructions"], data, DETAILS, budget),
        )
        self.root: ListColumns = self.tables[""]
        self.tables |= {f"{COMPUTATIONS}.{path}": table for path, table in contents.items() if path}
        self.buffers: ListColumns = self.tables[BUFFERS]
        self.allocations: ListColumns = self.tables[ALLOCATIONS]
        self.assigned: ListColumns = self.tables[f"{ALLOCATIONS}.assigned"]
        for sizes in (self.allocations["size"], self.assigned["size"], self.assigned["offset"]):
            np.clip(sizes, 0, MAX_BYTES, out=sizes)
        if not len(self.instructions["id"]):
            remedy = "pass a profile, or an HloProto with its buffer assignment"
            raise InputError("the file contains no compiled program", source, remedy)
        if not len(self.allocations["index"]):
            raise NoBufferAssignmentError(source, self.name)

    @cached_property
    def texts(self) -> ModuleTexts:
        """The texts alone, for columns that are read later, after the tables are released."""
        return ModuleTexts(self.data, self.budget, self.computations, self.instructions)

    @property
    def op_name(self) -> TextSource:
        """The model path of each instruction. It is that of `texts`, so the file is read once for both."""
        return self.texts.op_name

    @property
    def name(self) -> str:
        return str(self.root["hlo_module.name"].text_at(self.data))

    @property
    def key(self) -> str:
        """The program's key in profiles, `jit_train_step(34)`, with its id on the device."""
        return f"{self.name}({int(self.root['hlo_module.id'][0]) % 2**64})"

    @property
    def entry_computation(self) -> str:
        return str(self.root["hlo_module.entry_computation_name"].text_at(self.data))

    @cached_property
    def opcode(self) -> Text:
        return self.texts_of(self.instructions["opcode"])

    def is_opcode(self, names: set[str]) -> Mask:
        """Return a mask of the instructions with one of these opcodes."""
        codes = [code for name in names if (code := self.opcode_codes.get(name)) is not None]
        wanted = marked(len(self.opcode.strings) + 1, np.array(codes, dtype=np.int64))  # the last: no opcode
        return wanted[self.opcode.codes]

    @cached_property
    def opcode_codes(self) -> dict[str, int]:
        """The code of each opcode."""
        return {name: code for code, name in enumerate(self.opcode.strings)}

    @cached_property
    def entry(self) -> int:
        """The entry computation's row: by id, else by name, else the last, since callers follow callees."""
        row = int(self.computation_index.rows(self.root["hlo_module.entry_computation_id"])[0])
        if row >= 0:
            return row
        names, entry = self.computations["name"], self.root["hlo_module.entry_computation_name"]
        candidates = np.flatnonzero(names.length == entry.length[0])
        codes, _ = intern(self.data, *map(np.append, entry, names.take(candidates)))
        named = candidates[codes[1:] == codes[0]]
        return int(named[0]) if len(named) else len(self.computations["id"]) - 1

    @cached_property
    def instruction_index(self) -> IdIndex:
        return IdIndex(self.instructions["id"])

    @cached_property
    def computation_index(self) -> IdIndex:
        return IdIndex(self.computations["id"])

    @cached_property
    def operands(self) -> Lists:
        """The rows of each instruction's operands."""
        lists = Lists.of(self.tables.pop(f"{INSTRUCTIONS}.operand_ids"), len(self.instructions["id"]))
        return Lists(lists.begin, self.instruction_index.rows(lists.values))

    @cached_property
    def callees(self) -> Lists:
        """The rows of the computations that each instruction calls."""
        lists = Lists.of(self.tables.pop(f"{INSTRUCTIONS}.called_computation_ids"), len(self.instructions["id"]))
        return Lists(lists.begin, self.computation_index.rows(lists.values))

    @cached_property
    def instruction_shapes(self) -> tuple[ShapeTable, I32]:
        """The distinct shapes, and the index of each instruction's shape."""
        codes, distinct = self.instructions["shape"]
        serialized = self.bytes_of(distinct, OBJECT_BYTES)
        # An instruction without a shape gets the last shape, which has no type.
        index = np.where(codes < 0, len(serialized), codes).astype(np.int32)
        return ShapeTable.parse([*serialized, b""], self.budget), index

    @cached_property
    def buffer_instruction(self) -> I32:
        """The row of the instruction that defines each logical buffer, -1 where it is missing.

        Older files identify the instruction by name instead of id.
        """
        ids = self.buffers.pop("defined_at.instruction_id")
        names = self.tables[f"{BUFFERS}.defined_at.instruction_name"]
        rows = self.instruction_index.rows(ids)
        name_only = np.flatnonzero((ids[names["parent"]] == 0) & (names["value"].length > 0))
        if not len(name_only):
            return rows
        instruction_names: Spans = self.instructions["name"]
        searched = names["value"].take(name_only)
        codes = intern(self.data, *map(np.append, instruction_names, searched))[0].astype(np.int64)
        n = len(instruction_names.start)
        rows[names["parent"][name_only]] = IdIndex(codes[:n]).rows(codes[n:])
        return rows

    @cached_property
    def buffer_node(self) -> I32:
        """The node of each logical buffer in the shape table (see ShapeTable), -1 where its shape index is invalid."""
        shapes, shape_index = self.instruction_shapes
        instruction = self.buffer_instruction
        node = np.where(instruction >= 0, shapes.begin[shape_index[instruction]], -1).astype(np.int32)
        path = Lists.of(self.tables[f"{BUFFERS}.defined_at.shape_index"], len(instruction))
        count = path.count()
        for depth in range(min(int(count.max(initial=0)), MAX_DEPTH)):
            deep = np.flatnonzero(count > depth)
            node[deep] = shapes.child(node[deep], path.nth(deep, depth))
        node[count > MAX_DEPTH] = -1
        return node


def _scanned(data: bytes | memoryview, budget: ReadBudget) -> tuple[dict[str, ListColumns], dict[str, ListColumns]]:
    """Return the tables of the file, and those of the instructions outside of fusions."""
    if len(data) < LARGE_BYTES:
        module, contents = _module_tables(data, budget)
        return scan(data, ASSIGNMENT, budget=budget) | module, contents
    mine, other = BudgetShare(budget), BudgetShare(budget)
    (module, contents), assignment = at_once(
        lambda: _module_tables(data, mine), lambda: scan(data, ASSIGNMENT, budget=other)
    )
    return assignment | module, contents


def _module_tables(data: bytes | memoryview, budget: Charges) -> tuple[dict[str, ListColumns], dict[str, ListColumns]]:
    tables = scan(data, MODULE, budget=budget)
    parsed_rows = np.flatnonzero(tables[COMPUTATIONS]["is_fusion_computation"] == 0)
    contents = scan(data, PARSED, tables[COMPUTATIONS]["span"].take(parsed_rows), budget)
    instructions = contents["instructions"]
    instructions["parent"] = parsed_rows.astype(np.int32)[instructions["parent"]]
    return tables, contents
