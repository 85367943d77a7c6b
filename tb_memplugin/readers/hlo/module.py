"""The tables of one HloProto, as they are in the file, with ids resolved to rows."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.text.strings import gather, intern
from tb_memplugin.protos.hlo_pb2 import HloComputationProto, HloProto
from tb_memplugin.readers.common.id_index import IdIndex
from tb_memplugin.readers.hlo.shapes import ShapeTable

COMPUTATIONS = "hlo_module.computations"
INSTRUCTIONS = f"{COMPUTATIONS}.instructions"
BUFFERS = "buffer_assignment.logical_buffers"
ALLOCATIONS = "buffer_assignment.buffer_allocations"
TRACES = "buffer_assignment.heap_simulator_traces"

# Most instructions are inside fusions, where no buffer is. So computations are located first, and then only those
# that may define buffers are opened. Aliases follow from the instructions, and an event's names from its buffer.
OUTLINE = Plan(
    HloProto.DESCRIPTOR,
    skip=(
        INSTRUCTIONS,
        "buffer_assignment.buffer_aliases",
        f"{TRACES}.events.computation_name",
        f"{TRACES}.events.instruction_name",
        f"{ALLOCATIONS}.parameter_number",
        f"{ALLOCATIONS}.parameter_shape_index",
    ),
    located=(COMPUTATIONS,),
)
COMPUTATION = Plan(
    HloComputationProto.DESCRIPTOR,
    skip=("name", "id", "root_id", "instructions.metadata.op_type", "instructions.output_operand_aliasing"),
)

LARGEST = 2**50  # bytes; no device has a PiB, and sums of what a damaged file may claim would overflow

Table = dict[str, Any]


@dataclass(frozen=True)
class Lists:
    """A repeated number per row of another table: row r has `values[begin[r]:begin[r + 1]]`."""

    begin: I64
    values: I64

    @staticmethod
    def of(table: Table, rows: int) -> Lists:
        return Lists(np.searchsorted(table["parent"], np.arange(rows + 1)), table["value"])

    def count(self) -> I64:
        counts: I64 = np.diff(self.begin)
        return counts

    def nth(self, rows: npt.NDArray[np.integer[Any]], n: int, default: int = -1) -> I64:
        """The n-th number of each row."""
        at = self.begin[rows] + n
        known = (rows >= 0) & (at < self.begin[rows + 1])
        found = np.full(len(rows), default, dtype=np.int64)
        found[known] = self.values[at[known]]
        return found


class Module:
    """Everything a reader asks of an HloProto; ids are resolved, nothing is interpreted."""

    def __init__(self, data: bytes | memoryview, where: str) -> None:
        try:
            self.tables: dict[str, Table] = scan(data, OUTLINE)
            opened = np.flatnonzero(self.tables[COMPUTATIONS]["is_fusion_computation"] == 0)
            inside = scan(data, COMPUTATION, self.tables[COMPUTATIONS]["span"].take(opened))
        except ValueError as error:
            raise InputError(
                f"the compiled program is damaged ({error})", where, "profile again, or copy the file again"
            ) from error
        self.data = data
        self.root: Table = self.tables[""]
        self.computations: Table = self.tables[COMPUTATIONS]
        self.instructions: Table = inside["instructions"]
        self.instructions["parent"] = opened[self.instructions["parent"]]
        self.tables |= {f"{COMPUTATIONS}.{path}": table for path, table in inside.items() if path}
        self.buffers: Table = self.tables[BUFFERS]
        self.allocations: Table = self.tables[ALLOCATIONS]
        self.events: Table = self.tables[f"{TRACES}.events"]
        self.assigned: Table = self.tables[f"{ALLOCATIONS}.assigned"]
        for sizes in (self.allocations["size"], self.assigned["size"], self.assigned["offset"]):
            np.clip(sizes, 0, LARGEST, out=sizes)
        if not len(self.instructions["id"]):
            raise InputError("no compiled program inside", where, "give a profile, or an HloProto with its buffers")
        if not len(self.allocations["index"]):
            raise InputError(
                "the program has no buffer assignment", where, "dump or profile it after optimizations, compiled"
            )

    @property
    def nbytes(self) -> int:
        """About what it holds in memory; a file that is mapped into it takes none."""
        mapped = isinstance(self.data, memoryview) and isinstance(self.data.obj, mmap.mmap)
        columns = [column for table in self.tables.values() for column in table.values()]
        return (0 if mapped else len(self.data)) + sum(_nbytes(column) for column in columns)

    def word(self, span: Spans, row: int = 0) -> str:
        start, length = int(span.start[row]), int(span.length[row])
        return bytes(self.data[start : start + length]).decode("utf-8", "replace")

    def pieces(self, spans: Spans) -> list[bytes]:
        return [bytes(self.data[s : s + n]) for s, n in zip(spans.start.tolist(), spans.length.tolist(), strict=True)]

    def names(self, spans: Spans) -> Text:
        """A column of texts that mostly differ: kept as they come."""
        return Text(np.arange(len(spans.start), dtype=np.int32), Strings(*gather(self.data, *spans)))

    def texts(self, spans: Spans) -> Text:
        """A column of texts that repeat: interned."""
        codes, first = intern(self.data, *spans)
        return Text(codes, Strings(*gather(self.data, *spans.take(first))))

    @property
    def name(self) -> str:
        return self.word(self.root["hlo_module.name"])

    @property
    def key(self) -> str:
        """`jit_train_step(34)`, as profiles key programs; in them the number is the program's id on the device."""
        return f"{self.name}({int(self.root['hlo_module.id'][0]) % 2**64})"

    @property
    def entry_computation(self) -> str:
        return self.word(self.root["hlo_module.entry_computation_name"])

    @cached_property
    def opcode(self) -> Text:
        return self.texts(self.instructions["opcode"])

    @cached_property
    def scope(self) -> Text:
        """Per instruction: its model path, as JAX's op_name has it."""
        return self.texts(self.instructions["metadata.op_name"])

    def is_opcode(self, names: set[str]) -> npt.NDArray[np.bool_]:
        """Per instruction: whether its opcode is one of these."""
        strings = self.opcode.strings
        wanted = np.array([strings[i] in names for i in range(len(strings))] + [False])  # code -1: no opcode
        mask: npt.NDArray[np.bool_] = wanted[self.opcode.codes]
        return mask

    @cached_property
    def entry(self) -> int:
        """The entry computation's row: by id, else by name, else the last, since callers come after callees."""
        row = int(self.computation_index.rows(self.root["hlo_module.entry_computation_id"])[0])
        if row >= 0:
            return row
        n = len(self.computations["id"])
        named = [r for r in range(n) if self.word(self.computations["name"], r) == self.entry_computation]
        return named[0] if named else n - 1

    @cached_property
    def instruction_index(self) -> IdIndex:
        return IdIndex(self.instructions["id"])

    @cached_property
    def computation_index(self) -> IdIndex:
        return IdIndex(self.computations["id"])

    @cached_property
    def operands(self) -> Lists:
        """Per instruction: the rows of its operands."""
        lists = Lists.of(self.tables[f"{INSTRUCTIONS}.operand_ids"], len(self.instructions["id"]))
        return Lists(lists.begin, self.instruction_index.rows(lists.values).astype(np.int64))

    @cached_property
    def callees(self) -> Lists:
        """Per instruction: the rows of the computations it calls."""
        lists = Lists.of(self.tables[f"{INSTRUCTIONS}.called_computation_ids"], len(self.instructions["id"]))
        return Lists(lists.begin, self.computation_index.rows(lists.values).astype(np.int64))

    @cached_property
    def shape_of(self) -> tuple[ShapeTable, I32]:
        """The distinct shapes, and which one each instruction has."""
        codes, first = intern(self.data, *self.instructions["shape"])
        pieces = self.pieces(self.instructions["shape"].take(first))
        # An instruction without a shape gets one of no type, the last.
        return ShapeTable.parse([*pieces, b""]), np.where(codes < 0, len(pieces), codes).astype(np.int32)

    @cached_property
    def buffer_instruction(self) -> I32:
        """Per logical buffer: the row of the instruction that defines it, -1 where the file lacks it.

        Older files give a name in place of an id.
        """
        ids, names = self.buffers["defined_at.instruction_id"], self.buffers["defined_at.instruction_name"]
        rows = self.instruction_index.rows(ids)
        named = (ids == 0) & (names.length > 0)
        if not named.any():
            return rows
        known: Spans = self.instructions["name"]
        wanted = names.take(np.flatnonzero(named))
        both = Spans(np.r_[known.start, wanted.start], np.r_[known.length, wanted.length])
        codes = intern(self.data, *both)[0].astype(np.int64)
        n = len(known.start)
        rows[named] = IdIndex(codes[:n]).rows(codes[n:])
        return rows

    @cached_property
    def buffer_node(self) -> I32:
        """Per logical buffer: its node in the shape table (see ShapeTable), -1 where the file makes no sense."""
        shapes, shape_of = self.shape_of
        defined = self.buffer_instruction
        node = np.where(defined >= 0, shapes.begin[shape_of[defined]], -1).astype(np.int32)
        path = Lists.of(self.tables[f"{BUFFERS}.defined_at.shape_index"], len(defined))
        count = path.count()
        for depth in range(int(count.max(initial=0))):
            deep = np.flatnonzero(count > depth)
            node[deep] = shapes.child(node[deep], path.nth(deep, depth))
        return node


def _nbytes(column: npt.NDArray[np.integer[Any]] | Spans) -> int:
    return column.start.nbytes + column.length.nbytes if isinstance(column, Spans) else column.nbytes
