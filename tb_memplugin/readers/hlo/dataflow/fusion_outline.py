"""Opcodes and names of the instructions inside all fusions, without their operands, which few analyses need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, Mask
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.protos.hlo_fields import HloComputationProto, HloInstructionProto
from tb_memplugin.readers.common.distinct import distinct
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, OF_COMPUTATIONS

READ = ("opcode", "metadata")
OUTLINE = Plan(
    HloComputationProto,
    skip=(
        *OF_COMPUTATIONS,
        *(f"instructions.{name}" for name in HloInstructionProto.names if name not in READ),
        *(f"instructions.metadata.{name}" for name in ("op_type", "source_file", "source_line", "stack_frame_id")),
    ),
    interned=("instructions.opcode", "instructions.metadata.op_name"),
)


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
        positions = nodes.positions_of({"fusion"})
        called = module.callees.nth(nodes.schedule.order[positions], 0)
        positions, called = positions[called >= 0], called[called >= 0]
        try:
            bodies = module.tables[COMPUTATIONS]["span"].take(called)
            table = scan(module.data, OUTLINE, bodies, module.budget)["instructions"]
        except ValueError:
            none = Text(np.empty(0, dtype=np.int32), Strings.of([]))
            return FusionOutline(np.empty(0, dtype=np.int32), none, none)
        return FusionOutline(
            positions[table["parent"]].astype(np.int32),
            module.texts_of(table["opcode"]),
            module.texts_of(table["metadata.op_name"]),
        )

    def positions_with(self, rows: Mask) -> I32:
        """Return the positions of the fusions that contain one of these rows."""
        return distinct(self.position[rows])
