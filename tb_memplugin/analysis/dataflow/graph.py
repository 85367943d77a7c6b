"""A program's data flow as a directed graph of values and instructions, with reachability."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.walks import grouped, reach


def concatenate_ranges(first: I64, count: I64) -> I64:
    """Return the ranges first[i], ..., first[i] + count[i] - 1, one after the other."""
    ends = np.cumsum(count)
    steps: I64 = np.arange(int(count.sum())) + np.repeat(first - ends + count, count)
    return steps


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
    length: int  # of the schedule

    @property
    def nodes(self) -> int:
        return len(self.values) + self.length

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
        # Order at one position: values carried in, then values read, then results.
        produced = values.producer
        when = np.r_[3 * values.use + 1, 3 * produced[made] + 2, 3 * produced[entered], 3 * produced[bundle_output] + 2]
        _, order = grouped(np.maximum(when, 0).astype(np.int32), 3 * self.length + 3)
        return source[order], target[order]

    @cached_property
    def consumers(self) -> tuple[I32, I32]:
        """Return (read, node) pairs: the nodes that each read, by its index in `DataflowValues.use`, enters.

        They are the reading instruction, or those of its results that are computed from the value.
        """
        values, (operand, result) = self.values, self.values.bundled
        computed = values.producer[result] >= 0
        operand, result = operand[computed], result[computed]
        several = np.zeros(self.length, dtype=bool)
        several[values.producer[result]] = True
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
        return DataflowGraph(replace(values, loop_carried=(source_value[~back], to[~back])), self.length)

    @cached_property
    def forward(self) -> CsrGraph:
        return CsrGraph.of(*self.edges, self.nodes)

    @cached_property
    def backward(self) -> CsrGraph:
        return CsrGraph.of(self.edges[1], self.edges[0], self.nodes)


def read_keys(value: I32, position: I32) -> I64:
    """Return a number for each read of a value at a position."""
    key: I64 = value.astype(np.int64) * 2**31 + position
    return key


@memoize
def dataflow_graph(recording: Recording) -> DataflowGraph | None:
    """Return a program's data flow; None if the recording has none, or lacks a schedule or values, as damaged files do.

    So a graph has at least one position and one value, and every analysis of it may rely on that.
    """
    program = recording.program
    if program is None or program.values is None or program.value is None or not recording.length:
        return None
    values = program.values()
    return DataflowGraph(values, recording.length) if len(values) else None


@memoize
def uses(recording: Recording) -> tuple[I64, I32]:
    """Return (begin, use): row r of `allocations` is read at positions use[begin[r]:begin[r + 1]], in rising order.

    Without data flow, no row has uses.
    """
    rows = len(recording.allocations)
    graph = dataflow_graph(recording)
    if graph is None or recording.program is None or recording.program.value is None:
        return np.zeros(rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    value, values = recording.program.value, graph.values
    count = np.where(value >= 0, np.diff(np.r_[values.use_begin, values.use_begin[-1:]])[value], 0)
    begin = np.r_[0, np.cumsum(count)].astype(np.int64)
    return begin, values.use[concatenate_ranges(values.use_begin[np.maximum(value, 0)], count)]


@memoize
def row_of_value(recording: Recording) -> I32:
    """Return the row of `allocations` that contains each value, -1 if it is in another memory space."""
    graph = dataflow_graph(recording)
    if graph is None or recording.program is None or recording.program.value is None:
        return np.empty(0, dtype=np.int32)
    row = np.full(len(graph.values), -1, dtype=np.int32)
    value = recording.program.value
    row_numbers = np.flatnonzero(value >= 0)[::-1]  # of several rows the first
    row[value[row_numbers]] = row_numbers
    return row
