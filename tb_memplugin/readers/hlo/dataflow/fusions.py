"""FusedComputations of fusions: which results are derived element by element from which operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.dataflow import Derivation
from tb_memplugin.model.text import Strings
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.hlo_fields import HloComputationProto, HloInstructionProto, OpMetadata
from tb_memplugin.readers.common.id_index import IdIndex
from tb_memplugin.readers.hlo.dataflow.nodes import is_one_of, range_offsets
from tb_memplugin.readers.hlo.module.lists import Lists, begin_of_rows
from tb_memplugin.readers.hlo.module.shapes import ShapeTable, elements_of
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, OBJECT_BYTES, OF_COMPUTATIONS, HloModule

READ = ("opcode", "shape", "metadata", "parameter_number", "id", "operand_ids")
CONTENTS = Plan(
    HloComputationProto,
    skip=(
        *OF_COMPUTATIONS,
        *(f"instructions.{name}" for name in HloInstructionProto.names if name not in READ),
        *(f"instructions.metadata.{name}" for name in OpMetadata.names if name != "op_name"),
    ),
    interned=("instructions.opcode", "instructions.shape"),
)
COPYING = {
    "all-reduce", "all-reduce-start", "bitcast", "convert", "copy", "copy-start", "opt-barrier", "reshape", "reverse",
    "transpose",
}  # fmt: skip
ELEMENTWISE = {
    "abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp", "compare", "complex", "cosine", "divide",
    "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic",
    "maximum", "minimum", "multiply", "negate", "not", "or", "power", "real", "reduce-precision", "remainder",
    "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic",
    "shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor",
}  # fmt: skip
IN_PLACE = {"dynamic-update-slice", "scatter"}
PARTIAL = {"slice", "dynamic-slice", "concatenate", "pad", "all-gather", "all-gather-start", "reduce-scatter"}
NOT_DERIVED = 255


class FusedComputations:
    """The instructions of fused computations as one graph; `first` and `stop` delimit each computation's rows."""

    def __init__(self, module: HloModule, computations: I64) -> None:
        rows, which = np.unique(computations, return_inverse=True)
        contents = scan(module.data, CONTENTS, module.tables[COMPUTATIONS]["span"].take(rows), module.budget)
        table = contents["instructions"]
        n = len(table["id"])
        bounds = begin_of_rows(table["parent"], len(rows))
        self.first, self.stop = bounds[:-1][which].astype(np.int64), bounds[1:][which].astype(np.int64)
        self.index = IdIndex(table["id"])
        lists = Lists.of(contents["instructions.operand_ids"], n)
        self.begin, self.count = lists.begin.astype(np.int64), lists.count()
        self.operand = self.index.rows(lists.values)
        self.parameter_number = table["parameter_number"]
        self.op_name: Spans = table["metadata.op_name"]
        self.opcode = opcode = module.texts_of(table["opcode"])
        derivation, weights = classify_opcodes(opcode.strings)
        self.weight = weights[opcode.codes]
        self.is_tuple = is_one_of(opcode, {"tuple"})
        self.is_parameter = is_one_of(opcode, {"parameter"})
        elements = _elements(module, table)
        user = np.repeat(np.arange(n), self.count)
        operand_elements = np.where(self.operand >= 0, elements[self.operand], -1) if n else elements[:0]
        self.kind = operand_derivations(
            derivation[opcode.codes[user]], range_offsets(self.count, module.budget), elements[user], operand_elements
        )
        # Fusions inside fusions change the layout of one operand.
        nested = is_one_of(opcode, {"fusion"}) & (self.count == 1)
        self.kind[nested[user] & (elements[user] == operand_elements)] = Derivation.ELEMENTWISE
        self.weight[nested] = 0

    @property
    def everything(self) -> tuple[U8, U8]:
        """Return columns like `kind` and `weight` that lead from each instruction to all of its operands."""
        return np.zeros(len(self.operand), dtype=np.uint8), np.zeros(len(self.weight), dtype=np.uint8)


def _elements(module: HloModule, table: dict[str, Any]) -> I64:
    codes, distinct = table["shape"]
    shapes = ShapeTable.parse([*module.bytes_of(distinct, OBJECT_BYTES), b""], module.budget)
    elements = np.array([elements_of(shape) for shape in shapes.distinct], dtype=np.int64)
    found: I64 = elements[shapes.kind[shapes.begin]][codes]
    return found


def classify_opcodes(opcodes: Strings) -> tuple[U8, U8]:
    """Return, per opcode and lastly for none, its derivation kind (or NOT_DERIVED) and how many steps it counts."""
    found = np.full(len(opcodes) + 1, NOT_DERIVED, dtype=np.uint8)
    weight = np.ones(len(opcodes) + 1, dtype=np.uint8)
    for i in range(len(opcodes)):
        name = opcodes[i]
        if name in COPYING or name in ELEMENTWISE:
            found[i], weight[i] = Derivation.ELEMENTWISE, name in ELEMENTWISE
        elif name in IN_PLACE:
            found[i] = Derivation.IN_PLACE
        elif name in PARTIAL:
            found[i], weight[i] = Derivation.PART, 0
    return found, weight


def operand_derivations(derivation: U8, nth: I64, result: I64, operand: I64) -> U8:
    """Return, per operand, the derivation kind of the result from it, considering the numbers of elements of both."""
    same = (result == operand) & (result > 0)
    kept = np.select(
        [derivation == Derivation.ELEMENTWISE, derivation == Derivation.IN_PLACE, derivation == Derivation.PART],
        [same, same & (nth == 0), operand > 1],  # a scalar operand is an index
        False,
    )
    return np.where(kept, derivation, NOT_DERIVED).astype(np.uint8)
