"""Operations inside of fusions: opcodes and names of all of them, and the shapes of their results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.program import FusedOperations
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.hlo_fields import HloComputationProto, HloInstructionProto, OpMetadata
from tb_memplugin.readers.common.rows import distinct
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes
from tb_memplugin.readers.hlo.module import shapes
from tb_memplugin.readers.hlo.module.columns import ModuleTexts
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, OBJECT_BYTES, OF_COMPUTATIONS, HloModule


def body_plan(read: tuple[str, ...], interned: tuple[str, ...], of_body: tuple[str, ...] = ()) -> Plan:
    """Return the plan that scans bodies of fusions for these fields of their instructions, and `of_body` of their own.

    Of the instructions' metadata, only op_name is read.
    """
    return Plan(
        HloComputationProto,
        skip=(
            *(name for name in OF_COMPUTATIONS if name not in of_body),
            *(f"instructions.{name}" for name in HloInstructionProto.names if name not in read),
            *(f"instructions.metadata.{name}" for name in OpMetadata.names if name != "op_name"),
        ),
        interned=tuple(f"instructions.{name}" for name in interned),
    )


OUTLINE = body_plan(("opcode", "metadata"), interned=("opcode", "metadata.op_name"))


@dataclass(frozen=True, eq=False)
class FusionOutline:
    """The instructions inside fusions, one row each."""

    position: I32  # of the fusion
    opcode: Text
    op_name: Text

    @staticmethod
    def of(nodes: ResultNodes) -> FusionOutline:
        """Read the bodies of all fusions; none if one of them is damaged."""
        module = nodes.module
        positions, bodies = fusion_bodies(module, nodes.schedule.order)
        try:
            table = scan(module.data, OUTLINE, bodies, module.budget)["instructions"]
        except ValueError:
            return FusionOutline(positions[:0], Text.of([]), Text.of([]))
        return FusionOutline(
            positions[table["parent"]].astype(np.int32),
            module.texts_of(table["opcode"]),
            module.texts_of(table["metadata.op_name"]),
        )

    def positions_with(self, rows: Mask) -> I32:
        """Return the positions of the fusions that contain one of these rows."""
        return distinct(self.position[rows])


CONTENTS = body_plan(
    ("opcode", "shape", "metadata", "id"), interned=("opcode", "shape", "metadata.op_name"), of_body=("root_id",)
)
# Operations that compute nothing, or nothing that a compiler would store.
FREE = {"bitcast", "broadcast", "constant", "get-tuple-element", "iota", "parameter", "reshape", "tuple"}


def fusion_bodies(module: HloModule, order: I64) -> tuple[I32, Spans]:
    """Return the position of each fusion of a schedule, and where the file has its computation."""
    positions = np.flatnonzero(module.is_opcode({"fusion"})[order])
    called = module.callees.nth(order[positions], 0)
    known = called >= 0
    return positions[known].astype(np.int32), module.tables[COMPUTATIONS]["span"].take(called[known])


def read_fused(file: ModuleTexts, positions: I32, bodies: Spans) -> FusedOperations:
    """Read the operations inside of fusions; none if a fusion is damaged."""
    try:
        contents = scan(file.data, CONTENTS, bodies, file.budget)
    except ValueError:
        return FusedOperations(positions[:0], Text.of([]), Text.of([]), np.empty(0, dtype=np.int64))
    table = contents["instructions"]
    opcode, scope = file.texts_of(table["opcode"]), file.texts_of(table["metadata.op_name"])
    is_result = table["id"] == contents[""]["root_id"][table["parent"]]
    rows = np.flatnonzero(~is_result & ~opcode.isin(FREE) & scope.nonempty)
    codes, distinct = table["shape"]
    found = [shapes.parsed(each) for each in file.bytes_of(distinct, OBJECT_BYTES)]
    texts = Strings.of([shapes.shape_text(shape) for shape in found])
    sizes = np.array([*map(shapes.unpadded_bytes, found), 0], dtype=np.int64)
    return FusedOperations(
        positions[table["parent"][rows]].astype(np.int32),
        scope.take(rows),
        Text(codes[rows].astype(np.int32), texts),
        sizes[codes[rows]],
    )
