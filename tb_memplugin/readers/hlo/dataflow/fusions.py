"""Fusions: the operands that each of their results is computed from, element by element or not."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8, take_or_missing
from tb_memplugin.model.dataflow import Derivation
from tb_memplugin.model.text import Strings
from tb_memplugin.native.graph.walks import derive
from tb_memplugin.native.protobuf.messages import scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.readers.common.rows import IdIndex
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fused_operations import body_plan
from tb_memplugin.readers.hlo.dataflow.nodes import range_offsets
from tb_memplugin.readers.hlo.module.columns import Lists, begin_of_rows
from tb_memplugin.readers.hlo.module.shapes import ShapeTable, elements_of
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, OBJECT_BYTES, HloModule

CONTENTS = body_plan(
    ("opcode", "shape", "metadata", "parameter_number", "id", "operand_ids", "called_computation_ids"),
    interned=("opcode", "shape"),
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
# How the result of an opcode is derived from its operands, and in how many steps.
DERIVED = {
    **dict.fromkeys(COPYING, (Derivation.ELEMENTWISE, 0)),
    **dict.fromkeys(ELEMENTWISE, (Derivation.ELEMENTWISE, 1)),
    **dict.fromkeys(IN_PLACE, (Derivation.IN_PLACE, 1)),
    **dict.fromkeys(PARTIAL, (Derivation.PART, 0)),
}


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
        called = Lists.of(contents["instructions.called_computation_ids"], n)
        self.callees = Lists(called.begin, module.computation_index.rows(called.values))
        self.parameter_number = table["parameter_number"]
        self.op_name: Spans = table["metadata.op_name"]
        self.opcode = opcode = module.texts_of(table["opcode"])
        derivation, weights = classify_opcodes(opcode.strings)
        self.weight = weights[opcode.codes]
        self.is_tuple = opcode.isin({"tuple"})
        self.is_parameter = opcode.isin({"parameter"})
        elements, self.nbytes = _sizes(module, table)
        user = np.repeat(np.arange(n), self.count)
        operand_elements = np.where(self.operand >= 0, elements[self.operand], -1) if n else elements[:0]
        self.kind = operand_derivations(
            derivation[opcode.codes[user]], range_offsets(self.count, module.budget), elements[user], operand_elements
        )
        # Fusions inside fusions change the layout of one operand.
        nested = opcode.isin({"fusion"}) & (self.count == 1)
        self.kind[nested[user] & (elements[user] == operand_elements)] = Derivation.ELEMENTWISE
        self.weight[nested] = 0

    @property
    def everything(self) -> tuple[U8, U8]:
        """Return columns like `kind` and `weight` that lead from each instruction to all of its operands."""
        return np.zeros(len(self.operand), dtype=np.uint8), np.zeros(len(self.weight), dtype=np.uint8)


def _sizes(module: HloModule, table: dict[str, Any]) -> tuple[I64, I64]:
    """Return the numbers of elements and the unpadded bytes of instructions' results."""
    codes, distinct = table["shape"]
    shapes = ShapeTable.parse([*module.bytes_of(distinct, OBJECT_BYTES), b""], module.budget)
    elements = np.array([elements_of(shape) for shape in shapes.distinct], dtype=np.int64)
    return elements[shapes.kind[shapes.begin]][codes], shapes.array_bytes()[codes]


def classify_opcodes(opcodes: Strings) -> tuple[U8, U8]:
    """Return the derivation kind (or NOT_DERIVED) and the number of steps of each opcode, and lastly of no opcode."""
    found = [*(DERIVED.get(name, (NOT_DERIVED, 1)) for name in opcodes), (NOT_DERIVED, 1)]
    derivation, weight = np.array(found, dtype=np.uint8).T.copy()
    return derivation, weight


def operand_derivations(derivation: U8, nth: I64, result: I64, operand: I64) -> U8:
    """Return how the result is derived from each operand, from the opcode and both numbers of elements."""
    same = (result == operand) & (result > 0)
    kept = np.select(
        [derivation == Derivation.ELEMENTWISE, derivation == Derivation.IN_PLACE, derivation == Derivation.PART],
        [same, same & (nth == 0), operand > 1],  # a scalar operand is an index
        False,
    )
    return np.where(kept, derivation, NOT_DERIVED).astype(np.uint8)


SOURCE_BYTES = 128  # of an instruction that is visited and found
MAX_INSTRUCTIONS = 20_000_000  # to visit inside fusions, as a damaged file may contain any number


@dataclass(frozen=True, eq=False)
class FusedInstructions:
    """Instructions inside of fusions, one row each."""

    dataflow: DataflowAnalysis
    body: FusedComputations
    computation: I64  # row of `body.first`
    root: I32  # row of the body
    position: I32  # of the fusion

    def sources(self, kind: U8, weight: U8) -> tuple[I32, I32, I32, U8]:
        """Return (row, value of an operand, steps, kind) for each operand that an instruction is computed from.

        `kind` is the derivation along each operand edge of the body, and `weight` the steps of each instruction.
        """
        nodes, body = self.dataflow.nodes, self.body
        row, parameter, steps, kinds = derive(
            body.first[self.computation],
            body.stop[self.computation],
            self.root,
            body.begin,
            body.operand,
            kind,
            weight,
            min(MAX_INSTRUCTIONS, nodes.budget.left // SOURCE_BYTES),
        )
        number = body.parameter_number[parameter]
        user = self.dataflow.schedule.order[self.position[row]]
        operands = nodes.module.operands
        # The file's parameter number may be out of range.
        inside = body.is_parameter[parameter] & (number >= 0) & (number < operands.count()[user])
        operand = np.full(len(user), -1, dtype=np.int64)
        operand[inside] = operands.values[operands.begin[user[inside]] + number[inside]]
        position = take_or_missing(self.dataflow.schedule.position, operand)
        return row, nodes.value_of(self.dataflow.node_buffer, position), steps, kinds


@dataclass(frozen=True, eq=False)
class FusedResults(FusedInstructions):
    """The results of some fusions: one row for each array."""

    value: I32


def fused_results(module: HloModule, dataflow: DataflowAnalysis, positions: I32) -> FusedResults:
    """Find the results of these fusions. A body's root is its result, or the tuple of its results."""
    nodes = dataflow.nodes
    called = module.callees.nth(dataflow.schedule.order[positions], 0)
    positions, called = positions[called >= 0], called[called >= 0]
    body = FusedComputations(module, called)
    root = body.index.rows(module.computations["root_id"][called])
    is_tuple = root >= 0
    counts = is_tuple.astype(np.int64)
    is_tuple[is_tuple] = body.is_tuple[root[is_tuple]]
    counts[is_tuple] = body.count[root[is_tuple]]
    nth = range_offsets(counts, nodes.budget)
    which = np.repeat(np.arange(len(called)), counts)
    leaf, in_tuple = root[which], is_tuple[which]
    leaf[in_tuple] = body.operand[body.begin[leaf[in_tuple]] + nth[in_tuple]]
    top = nodes.top(positions)[which]
    node = np.where(in_tuple, nodes.shapes.child(top, nth.astype(np.int64)), top)
    good = (leaf >= 0) & (node >= 0)
    which, leaf = which[good], leaf[good].astype(np.int32)
    value = dataflow.node_buffer[nodes.node_at(positions[which], node[good])].astype(np.int32)
    return FusedResults(dataflow, body, which, leaf, positions[which], value)
