"""Operations inside of fusions, with the shapes of their results."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.program import FusedOperations
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.hlo_fields import HloComputationProto, HloInstructionProto, OpMetadata
from tb_memplugin.readers.hlo.module import shapes
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, OBJECT_BYTES, OF_COMPUTATIONS, HloModule
from tb_memplugin.readers.hlo.module.texts import ModuleTexts

READ = ("opcode", "shape", "metadata", "id")
CONTENTS = Plan(
    HloComputationProto,
    skip=(
        *(name for name in OF_COMPUTATIONS if name != "root_id"),
        *(f"instructions.{name}" for name in HloInstructionProto.names if name not in READ),
        *(f"instructions.metadata.{name}" for name in OpMetadata.names if name != "op_name"),
    ),
    interned=("instructions.opcode", "instructions.shape", "instructions.metadata.op_name"),
)
# They compute nothing, or nothing that a compiler would store.
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
        none = Text(np.empty(0, dtype=np.int32), Strings.of([]))
        return FusedOperations(positions[:0], none, none, np.empty(0, dtype=np.int64))
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
