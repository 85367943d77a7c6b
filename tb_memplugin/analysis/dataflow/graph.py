"""A program's data flow as a graph over which questions are asked: what comes of what, and what goes into what."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.native.graph.walks import grouped, reach

Mask = npt.NDArray[np.bool_]


def concatenate_ranges(first: I64, count: I64) -> I64:
    """first[i], first[i] + 1, ... count[i] of them, for each i."""
    ends = np.cumsum(count)
    steps: I64 = np.arange(int(count.sum())) + np.repeat(first - ends + count, count)
    return steps


@dataclass(frozen=True, eq=False)
class CsrGraph:
    """Node n leads to to[begin[n]:begin[n + 1]]."""

    begin: I64
    to: I32

    @staticmethod
    def of(source: I32, target: I32, nodes: int) -> CsrGraph:
        begin, order = grouped(source, nodes)
        return CsrGraph(begin, target[order])

    def reach(self, seeds: npt.NDArray[np.integer]) -> Mask:
        """Per node: whether a seed is there, or leads there."""
        return reach(self.begin, self.to, seeds.astype(np.int32)).view(np.bool_)


@dataclass(frozen=True, eq=False)
class DataflowGraph:
    """Values and positions as one graph: node v is a value, node n + p the instruction at position p.

    A value leads to what reads it and to what it is carried into; an instruction to what it makes. Where it makes
    each of several things of one other, those lead to each other instead.
    """

    values: DataflowValues
    length: int  # of the schedule

    @property
    def nodes(self) -> int:
        return len(self.values) + self.length

    def at(self, positions: I32) -> I32:
        """The nodes of instructions."""
        return (positions + len(self.values)).astype(np.int32)

    @cached_property
    def edges(self) -> tuple[I32, I32]:
        """(source, target) nodes of every edge, by the position where it happens."""
        values = self.values
        reader = values.used_value
        alone = values.producer >= 0
        alone[values.bundled[1]] = False
        made = np.flatnonzero(alone).astype(np.int32)
        (entering, entered), (bundle_input, bundle_output) = values.loop_carried, values.bundled
        source = np.r_[reader, self.at(values.producer[made]), entering, bundle_input].astype(np.int32)
        target = np.r_[self.at(values.use), made, entered, bundle_output].astype(np.int32)
        # At one position: what is carried in, what is read, what is made.
        produced = values.producer
        when = np.r_[3 * values.use + 1, 3 * produced[made] + 2, 3 * produced[entered], 3 * produced[bundle_output] + 2]
        _, order = grouped(np.maximum(when, 0).astype(np.int32), 3 * self.length + 3)
        return source[order], target[order]

    def without(self, source: Mask, target: Mask) -> DataflowGraph:
        """The same but for what is carried back, from a later position to an earlier one, between these values."""
        values = self.values
        fro, to = values.loop_carried
        back = source[fro] & target[to] & (values.producer[to] < values.producer[fro])
        if not back.any():
            return self
        return DataflowGraph(replace(values, loop_carried=(fro[~back], to[~back])), self.length)

    @cached_property
    def forward(self) -> CsrGraph:
        return CsrGraph.of(*self.edges, self.nodes)

    @cached_property
    def backward(self) -> CsrGraph:
        return CsrGraph.of(self.edges[1], self.edges[0], self.nodes)


@memoize
def dataflow_graph(recording: Recording) -> DataflowGraph | None:
    """The data flow of a program's recording; None where there is none to know."""
    program = recording.program
    if program is None or program.values is None or program.value is None:
        return None
    return DataflowGraph(program.values(), recording.length)


@memoize
def uses(recording: Recording) -> tuple[I64, I32]:
    """CSR over the rows of `allocations`: row r is read at the positions use[begin[r]:begin[r + 1]], rising.

    Nothing is known to read the rows of a recording without data flow.
    """
    rows = len(recording.allocations)
    known = dataflow_graph(recording)
    if known is None or recording.program is None or recording.program.value is None:
        return np.zeros(rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    value, values = recording.program.value, known.values
    count = np.where(value >= 0, np.diff(np.r_[values.use_begin, values.use_begin[-1:]])[value], 0)
    begin = np.r_[0, np.cumsum(count)].astype(np.int64)
    return begin, values.use[concatenate_ranges(values.use_begin[np.maximum(value, 0)], count)]


@memoize
def row_of_value(recording: Recording) -> I32:
    """Per value: the row of `allocations` that holds it, -1 where it lies in another memory."""
    known = dataflow_graph(recording)
    if known is None or recording.program is None or recording.program.value is None:
        return np.empty(0, dtype=np.int32)
    row = np.full(len(known.values), -1, dtype=np.int32)
    value = recording.program.value
    held = np.flatnonzero(value >= 0)[::-1]  # the first of several rows
    row[value[held]] = held
    return row


def contains_text(column: Text, word: bytes) -> Mask:
    """Per entry: whether it contains the word."""
    strings = column.strings
    starts = np.array([match.start() for match in re.finditer(re.escape(word), strings.blob)], dtype=np.int64)
    text = np.searchsorted(strings.offsets, starts, side="right") - 1
    found = np.zeros(len(strings) + 1, dtype=bool)  # the last: no text
    found[text[starts + len(word) <= strings.offsets[text + 1]]] = True
    mask: Mask = found[column.codes]
    return mask
