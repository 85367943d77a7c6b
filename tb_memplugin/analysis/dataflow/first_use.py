"""Where a program first joins an argument with anything else: casts, slices and transposes of it are still itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.dataflow.graph import DataflowGraph, Mask
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.native.graph.walks import owners

NOTHING, SEVERAL = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class FirstUse:
    """One row per position that reads a value which comes of one argument alone: by argument, then position."""

    argument: I32  # its value
    value: I32  # what is read
    position: I32
    joined: Mask  # with what comes of another argument

    @property
    def joined_only(self) -> FirstUse:
        keep = self.joined
        return FirstUse(self.argument[keep], self.value[keep], self.position[keep], self.joined[keep])

    def begin(self, arguments: I32) -> tuple[I64, I64]:
        """Per argument: its rows are those from the first number up to the second."""
        return np.searchsorted(self.argument, arguments), np.searchsorted(self.argument, arguments, side="right")


def owning_argument(flow: DataflowGraph, *, around: bool) -> I32:
    """Per node: the argument that it comes of where that is one alone, else NOTHING or SEVERAL.

    Single numbers, such as indices and rates, count for nothing. `around`: also by way of a loop's further turns.
    """
    values = flow.values
    owner = np.full(flow.nodes, NOTHING, dtype=np.int32)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    owner[arguments] = arguments
    counts = np.ones(flow.nodes, dtype=np.uint8)
    counts[: len(values)] = (values.elements > 1) | (values.argument >= 0) & (values.floating != 0)
    source, target = flow.edges
    for _ in range(2 if around else 1):
        owners(owner, source, target, counts)
    return owner


def first_use(flow: DataflowGraph, owner: I32, which: Mask) -> FirstUse:
    """Those that `which` marks, in the order of `Values.use`, for `owner_of` the flow."""
    values = flow.values
    value = values.used_value
    argument = owner[value]
    order = np.flatnonzero(which & (argument >= 0))
    order = order[np.lexsort((values.use[order], argument[order]))]
    position = values.use[order]
    return FirstUse(argument[order], value[order], position, owner[flow.at(position)] == SEVERAL)
