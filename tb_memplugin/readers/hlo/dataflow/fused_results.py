"""Instructions inside fusions, such as a fusion's results, and the operands that each of them is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.native.graph.walks import derive
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fusions import FusedComputations
from tb_memplugin.readers.hlo.dataflow.nodes import range_offsets
from tb_memplugin.readers.hlo.module.tables import HloModule

SOURCE_BYTES = 128  # of an instruction that is visited and found
MAX_INSTRUCTIONS = 20_000_000  # to visit inside fusions, as a damaged file may contain any number


@dataclass(frozen=True, eq=False)
class FusedInstructions:
    """Instructions inside of fusions, one row each."""

    module: HloModule
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
            min(MAX_INSTRUCTIONS, self.module.budget.left // SOURCE_BYTES),
        )
        number = body.parameter_number[parameter]
        user = self.dataflow.schedule.order[self.position[row]]
        operands = self.module.operands
        # The file's parameter number may be out of range.
        inside = body.is_parameter[parameter] & (number >= 0) & (number < operands.count()[user])
        operand = np.full(len(user), -1, dtype=np.int64)
        operand[inside] = operands.values[operands.begin[user[inside]] + number[inside]]
        position = np.where(operand >= 0, self.dataflow.schedule.position[operand], -1)
        value = np.where(position >= 0, self.dataflow.node_buffer[nodes.base[np.maximum(position, 0)]], -1)
        return row, value.astype(np.int32), steps, kinds


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
    is_tuple = (root >= 0) & body.is_tuple[root]
    counts = np.where(root < 0, 0, np.where(is_tuple, np.where(root >= 0, body.count[root], 0), 1))
    nth = range_offsets(counts, nodes.budget)
    which = np.repeat(np.arange(len(called)), counts)
    leaf, in_tuple = root[which], is_tuple[which]
    leaf[in_tuple] = body.operand[body.begin[leaf[in_tuple]] + nth[in_tuple]]
    top = nodes.top(positions)[which]
    node = np.where(in_tuple, nodes.shapes.child(top, nth.astype(np.int64)), top)
    result_node = nodes.base[positions[which]] + node - nodes.shapes.begin[nodes.shape[positions[which]]]
    good = (leaf >= 0) & (node >= 0)
    which, leaf, result_node = which[good], leaf[good].astype(np.int32), result_node[good]
    value = dataflow.node_buffer[result_node].astype(np.int32)
    return FusedResults(module, dataflow, body, which, leaf, positions[which], value)
