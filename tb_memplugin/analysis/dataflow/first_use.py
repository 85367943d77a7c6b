"""The first uses of each argument. Casts, slices and transposes of an argument alone still count as the argument."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.dataflow.graph import DataflowGraph
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.native.graph.walks import owners

NOTHING, SEVERAL = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class FirstUse:
    """One row per operation that reads a value derived from a single argument; in order of argument, then position."""

    argument: I32  # the argument's value
    value: I32  # the value that is read
    position: I32
    node: I32  # of the operation: the instruction at the position, or one of its results (DataflowGraph.consumers)
    combined: Mask  # the operation combines it with values of other arguments

    @property
    def combined_only(self) -> FirstUse:
        keep = self.combined
        return FirstUse(
            self.argument[keep], self.value[keep], self.position[keep], self.node[keep], self.combined[keep]
        )

    def row_range(self, arguments: I32) -> tuple[I64, I64]:
        """Return the first row of each argument, and the row after its last."""
        return np.searchsorted(self.argument, arguments), np.searchsorted(self.argument, arguments, side="right")


def owning_argument(graph: DataflowGraph, *, around_loops: bool) -> I32:
    """Return the argument that each node is derived from, or NOTHING or SEVERAL.

    Scalars, such as indices and learning rates, are ignored. `around_loops`: values also flow into a loop's next turn.
    """
    values = graph.values
    owner = np.full(graph.nodes, NOTHING, dtype=np.int32)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    owner[arguments] = arguments
    counts = np.ones(graph.nodes, dtype=np.uint8)
    counts[: len(values)] = (values.elements > 1) | (values.argument >= 0) & (values.floating != 0)
    source, target = graph.edges
    for _ in range(2 if around_loops else 1):
        owners(owner, source, target, counts)
    return owner


def first_use(graph: DataflowGraph, owner: I32, which: Mask) -> FirstUse:
    """Return the uses that `which` marks, a mask in the order of `DataflowValues.use`; `owner` is owning_argument()."""
    read, node = graph.consumers
    value = graph.values.used_value[read]
    argument = owner[value]
    order = np.flatnonzero(which[read] & (argument >= 0))
    order = order[np.lexsort((node[order], graph.values.use[read[order]], argument[order]))]
    node = node[order]
    return FirstUse(argument[order], value[order], graph.values.use[read[order]], node, owner[node] == SEVERAL)
