"""A program's data flow as a directed graph of values and instructions, first uses of arguments, and copies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64, Mask, concatenate_ranges, marked
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.walks import grouped, owners, reach


@dataclass(frozen=True, eq=False)
class CsrGraph:
    """A graph in compressed sparse rows: node n has edges to to[begin[n]:begin[n + 1]]."""

    begin: I64
    to: I32

    @staticmethod
    def of(source: I32, target: I32, nodes: int) -> CsrGraph:
        begin, order = grouped(source, nodes)
        return CsrGraph(begin, target[order])

    def reach(self, seeds: npt.NDArray[np.integer]) -> Mask:
        """Mark the nodes that are reachable from the seeds, seeds included."""
        return reach(self.begin, self.to, seeds.astype(np.int32)).view(np.bool_)


@dataclass(frozen=True, eq=False)
class DataflowGraph:
    """Values and instructions as one graph: node v is a value, node n + p the instruction at position p.

    Edges lead from a value to the instructions that read it and to the loop values it is carried into, and from an
    instruction to its results. If an instruction computes several results, each from some of its operands, as fusions
    and combined all-reduces do, edges lead from the operands to the results instead.
    """

    values: DataflowValues
    value: I32  # per row of `allocations`: its number in `values`, -1 for none
    program: Program
    length: int  # of the schedule

    @property
    def nodes(self) -> int:
        return len(self.values) + self.length

    @cached_property
    def is_argument(self) -> Mask:
        """A mask of the rows of `allocations` that are arguments, which are live from the start."""
        return (self.value >= 0) & (self.values.argument[self.value] >= 0)

    def at(self, positions: I32) -> I32:
        """Return the nodes of the instructions at these positions."""
        return (positions + len(self.values)).astype(np.int32)

    @cached_property
    def edges(self) -> tuple[I32, I32]:
        """Return the source and target nodes of all edges, in order of position."""
        values = self.values
        reader = values.used_value
        alone = values.producer >= 0
        alone[values.bundled[1]] = False
        made = np.flatnonzero(alone).astype(np.int32)
        (entering, entered), (bundle_input, bundle_output) = values.loop_carried, values.bundled
        source = np.r_[reader, self.at(values.producer[made]), entering, bundle_input].astype(np.int32)
        target = np.r_[self.at(values.use), made, entered, bundle_output].astype(np.int32)
        # At one position, the order is: values carried in, values read, results.
        produced = values.producer
        when = np.r_[3 * values.use + 1, 3 * produced[made] + 2, 3 * produced[entered], 3 * produced[bundle_output] + 2]
        _, order = grouped(np.maximum(when, 0).astype(np.int32), 3 * self.length + 3)
        return source[order], target[order]

    @cached_property
    def consumers(self) -> tuple[I32, I32]:
        """Return (read, node) pairs: for each read, by its index in `DataflowValues.use`, the nodes that get the value.

        They are the reading instruction, or the results of it that are computed from the value.
        """
        values, (operand, result) = self.values, self.values.bundled
        computed = values.producer[result] >= 0
        operand, result = operand[computed], result[computed]
        several = marked(self.length, values.producer[result])
        alone = np.flatnonzero(~several[values.use])
        # Reads are in order of value, then position, so the key rises.
        keys, wanted = read_keys(values.used_value, values.use), read_keys(operand, values.producer[result])
        at = np.searchsorted(keys, wanted)
        known = np.r_[keys, -1][at] == wanted
        read = np.r_[alone, at[known]].astype(np.int32)
        node = np.r_[self.at(values.use[alone]), result[known]].astype(np.int32)
        order = np.argsort(read, kind="stable")
        return read[order], node[order]

    @cached_property
    def position(self) -> I32:
        """Return the position of each node's instruction, -1 if it is not in the schedule."""
        position: I32 = np.r_[self.values.producer, np.arange(self.length, dtype=np.int32)]
        return position

    def without(self, source: Mask, target: Mask) -> DataflowGraph:
        """Return the graph without the loop edges that lead back to an earlier position between these values."""
        values = self.values
        source_value, to = values.loop_carried
        back = source[source_value] & target[to] & (values.producer[to] < values.producer[source_value])
        if not back.any():
            return self
        return replace(self, values=replace(values, loop_carried=(source_value[~back], to[~back])))

    @cached_property
    def forward(self) -> CsrGraph:
        return CsrGraph.of(*self.edges, self.nodes)

    @cached_property
    def backward(self) -> CsrGraph:
        return CsrGraph.of(self.edges[1], self.edges[0], self.nodes)


def read_keys(value: I32, position: I32) -> I64:
    """Return a number for each read of a value at a position."""
    return value.astype(np.int64) * 2**31 + position


@memoize
def dataflow_graph(recording: Recording) -> DataflowGraph | None:
    """Return a program's data flow; None without it, or without a schedule or values, as in damaged files.

    So every analysis of a graph may rely on at least one position and one value.
    """
    program = recording.program
    if program is None or program.values is None or program.value is None or not recording.length:
        return None
    values = program.values()
    return DataflowGraph(values, program.value, program, recording.length) if len(values) else None


@memoize
def uses(recording: Recording) -> tuple[I64, I32]:
    """Return (begin, use): row r of `allocations` is read at positions use[begin[r]:begin[r + 1]], in rising order.

    Without data flow, no row has uses.
    """
    rows = len(recording.allocations)
    graph = dataflow_graph(recording)
    if graph is None:
        return np.zeros(rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    value, values = graph.value, graph.values
    count = np.where(value >= 0, np.diff(np.r_[values.use_begin, values.use_begin[-1:]])[value], 0)
    begin = np.r_[0, np.cumsum(count)].astype(np.int64)
    return begin, values.use[concatenate_ranges(values.use_begin[np.maximum(value, 0)], count)]


@memoize
def row_of_value(recording: Recording) -> I32:
    """Return the row of `allocations` that contains each value, -1 if it is in another memory space."""
    graph = dataflow_graph(recording)
    if graph is None:
        return np.empty(0, dtype=np.int32)
    row = np.full(len(graph.values), -1, dtype=np.int32)
    row_numbers = np.flatnonzero(graph.value >= 0)[::-1]  # reversed, so that the first of several rows is assigned last
    row[graph.value[row_numbers]] = row_numbers
    return row


NOTHING, SEVERAL = -1, -2


class FirstUse(NamedTuple):
    """One row per operation that reads a value derived from a single argument; in order of argument, then position."""

    argument: I32  # the argument's value
    value: I32  # the value that is read
    position: I32
    node: I32  # of the operation: the instruction at the position, or one of its results (DataflowGraph.consumers)
    combined: Mask  # the operation combines it with values of other arguments

    @property
    def combined_only(self) -> FirstUse:
        return FirstUse._make(column[self.combined] for column in self)

    def row_range(self, arguments: I32) -> tuple[I64, I64]:
        """Return the first row of each argument, and the row after its last."""
        return np.searchsorted(self.argument, arguments), np.searchsorted(self.argument, arguments, side="right")


def owning_argument(graph: DataflowGraph, *, around_loops: bool) -> I32:
    """Return, for each node, the argument from which it is derived, NOTHING or SEVERAL.

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


def copies(values: DataflowValues) -> tuple[I32, I32]:
    """Return (value, its copy) pairs."""
    pairs = values.derivations
    copied = (pairs.kind == Derivation.ELEMENTWISE) & (pairs.steps == 0)
    return pairs.source[copied], pairs.target[copied]


def originals(recording: Recording, rows: I64) -> I64:
    """Return the rows of which these are copies, such as an update that is computed in another layout."""
    graph, row = dataflow_graph(recording), row_of_value(recording)
    if graph is None:
        return np.empty(0, dtype=np.int64)
    source, target = (row[values] for values in copies(graph.values))
    return np.unique(source[(source >= 0) & np.isin(target, rows)]).astype(np.int64)


def shared_memory(values: DataflowValues) -> tuple[I32, I32]:
    """Return pairs of values that share memory: a value that enters a loop and its carry, and updates in place."""
    pairs = values.derivations
    in_place = pairs.kind == Derivation.IN_PLACE
    one = np.r_[values.loop_carried[0], pairs.source[in_place]]
    return one.astype(np.int32), np.r_[values.loop_carried[1], pairs.target[in_place]].astype(np.int32)


def copied_from(values: DataflowValues) -> I32:
    """Return, for each value, the original at the end of its chain of copies; itself if it is no copy.

    A loop's value is a copy of the value that enters the loop if every iteration passes it on unchanged.
    """
    (copied, copy), (entering, entered) = copies(values), values.loop_carried
    source, target = np.r_[copied, entering].astype(np.int32), np.r_[copy, entered].astype(np.int32)
    _, order = grouped(np.maximum(values.producer[target], 0), int(values.producer.max(initial=0)) + 1)
    source, target = source[order], target[order]
    origin = np.arange(len(values), dtype=np.int32)
    origin[target] = NOTHING
    everything = np.ones(len(values), dtype=np.uint8)
    for _ in range(2):  # a loop's last value is known only after its body
        owners(origin, source, target, everything)
    return np.where(origin >= 0, origin, np.arange(len(values), dtype=np.int32))
