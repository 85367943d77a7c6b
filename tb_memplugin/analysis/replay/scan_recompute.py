"""A scan whose body is recomputed in the backward pass instead of stacking values for it, as schedule graphs."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph
from tb_memplugin.analysis.replay.program_graph import ProgramGraph
from tb_memplugin.analysis.replay.scan_stacks import ScanStacks
from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph, lower_peak
from tb_memplugin.model.arrays import I32, I64, Mask, marked
from tb_memplugin.model.lazy import cached_property

SLICES = ("/dynamic_slice", "/squeeze")


class SliceReads(NamedTuple):
    """Pairs of a dropped stack and a node of the backward body that reads it; a buffer for the slice, or -1."""

    stack: I64
    node: I32
    buffer: I64


@dataclass(frozen=True, eq=False)
class ScanRecomputation:
    """A forward and a backward loop whose body recomputes the values that it now reads from the forward loop's stacks.

    Copies of the forward body's nodes become part of the backward body. The values that the loop carries into each
    iteration are kept, as by jax.checkpoint; all other values that the copies read are the same in every iteration.
    """

    stacks: ScanStacks
    loops: tuple[int, int]  # positions

    @property
    def parent(self) -> ProgramGraph:
        return self.stacks.parent

    @cached_property
    def _copied(self) -> Mask:
        """Mark the forward body's nodes that are run again."""
        return self.stacks.computing(self.stacks.dropped)

    @cached_property
    def _number(self) -> I64:
        """Per node of the forward body: the number of its copy, after the backward body's nodes, -1 for none.

        The last copy is the parameter's, which reads the carried values from their stacks.
        """
        base, nodes = self.stacks.backward.graph.nodes, self.stacks.forward.graph.nodes
        number = np.full(nodes, -1, dtype=np.int64)
        copies = np.flatnonzero(self._copied)
        number[copies] = base + np.arange(len(copies))
        if self.stacks.entrance >= 0:
            number[self.stacks.entrance] = base + len(copies)
        return number

    @cached_property
    def body(self) -> ScheduleGraph:
        """The backward body with the copies."""
        base, source, number = self.stacks.backward.graph, self.stacks.forward.graph, self._number
        slices, inner = self._slice_reads, (number[source.source] >= 0) & (number[source.target] >= 0)
        writer = number[self.stacks.dropped.writer]
        size, buffer, node = self._copied_accesses
        return ScheduleGraph(
            np.r_[base.source, number[source.source[inner]], writer[slices.stack]].astype(np.int32),
            np.r_[base.target, number[source.target[inner]], slices.node].astype(np.int32),
            np.r_[base.size, size],
            np.r_[base.buffer, buffer + len(base.size)].astype(np.int32),
            np.r_[base.node, node].astype(np.int32),
            np.r_[base.workspace, source.workspace[self._copied], 0],
        )

    @property
    def _copied_accesses(self) -> tuple[I64, I64, I64]:
        """Return the sizes of the buffers of copies, slices and carried values; and each access's buffer and node."""
        number, source, stacks, slices = self._number, self.stacks.forward.graph, self.stacks, self._slice_reads
        carried = stacks.backward.graph.nodes + int(np.count_nonzero(self._copied))
        node = number[source.node]
        mine = (node >= 0) & ~np.isin(source.buffer, source.buffer[node == carried])
        buffers, inner = np.unique(source.buffer[mine], return_inverse=True)
        apart = slices.buffer < 0
        own, of_slice = np.unique(slices.stack[apart], return_inverse=True)
        value, reader = stacks.forward.reader
        reads_carried = np.unique(reader[(stacks.forward.value_node[value] == stacks.entrance) & self._copied[reader]])
        writer = number[stacks.dropped.writer]
        first = len(buffers)
        last = first + len(own)
        # A node that slices a stack already has a buffer for the slice; the copy writes there.
        there = -len(stacks.backward.graph.size) + slices.buffer[~apart]
        return (
            np.r_[source.size[buffers], stacks.dropped.slice[own], stacks.carried.size.sum()],
            np.r_[
                inner, first + np.arange(len(own)), first + of_slice, there, np.full(len(reads_carried) + 1, last)
            ],
            np.r_[
                node[mine], writer[own], slices.node[apart], writer[slices.stack[~apart]], carried,
                number[reads_carried],
            ],
        )  # fmt: skip

    @cached_property
    def _slice_reads(self) -> SliceReads:
        stacks, backward = self.stacks, self.stacks.backward
        nodes, dropped = backward.graph.nodes, self.stacks.dropped
        memory, node = stacks.reads
        read = np.isin(memory, dropped.memory)
        key = np.unique(np.searchsorted(dropped.memory, memory[read]) * np.int64(nodes) + node[read])
        stack, node = key // nodes, (key % nodes).astype(np.int32)
        made = np.flatnonzero((backward.buffer >= 0) & (backward.row_node >= 0))
        results = np.bincount(backward.row_node[made], minlength=nodes)
        result = np.full(nodes, -1, dtype=np.int64)
        result[backward.row_node[made]] = backward.buffer[made]
        only = (np.bincount(stack, minlength=len(dropped.memory))[stack] == 1) & (results[node] == 1)
        only &= stacks.program.op_name.where(lambda text: text.endswith(SLICES))[backward.position[node]]
        size, wanted = np.r_[backward.graph.size, 0][result[node]], dropped.slice[stack]
        return SliceReads(stack, node, np.where(only & (size <= wanted) & (2 * size >= wanted), result[node], -1))

    @cached_property
    def backward_bytes(self) -> int | None:
        """The additional bytes that the backward body needs; None if its graph has a cycle."""
        body, base = self.body, self.stacks.backward.graph
        copies = body.nodes - base.nodes - 1
        # Each iteration recomputes its values first.
        order = body.sorted_by(np.r_[np.arange(base.nodes), np.arange(copies) / (copies + 1) - 2, -3])
        if len(order) < body.nodes:
            return None
        return body.peak(lower_peak(body, order)) - base.peak(base.own_order)

    @cached_property
    def forward_bytes(self) -> int:
        """The bytes that the forward body needs when it writes no dropped stack."""
        forward, values = self.stacks.forward, self.stacks.values
        value, node = forward.reader
        needed = np.setdiff1d(values.loop_carried[0], self.stacks.dropped.value)
        roots = forward.value_node[needed]
        inside = forward.value_node[value] >= 0
        needs = CsrGraph.of(node[inside], forward.value_node[value[inside]], forward.graph.nodes)
        runs = needs.reach(np.unique(roots[roots >= 0]))[forward.graph.node]
        graph = replace(forward.graph, buffer=forward.graph.buffer[runs], node=forward.graph.node[runs])
        return graph.peak(graph.own_order)

    def apply(self, graph: ScheduleGraph, shrinks: float) -> ScheduleGraph:
        """Return the parent's graph with this scan recomputed; `graph` may have other scans recomputed already.

        If the backward body needs less memory, it is due to a better order; the share `shrinks` of it is counted.
        """
        forward, backward = (int(self.parent.node[loop]) for loop in self.loops)
        buffer, node = self._accesses(graph, forward, backward)
        workspace = graph.workspace.copy()
        more = self.backward_bytes or 0
        workspace[backward] += more if more > 0 else int(shrinks * more)
        workspace[forward] = min(workspace[forward], self.forward_bytes)
        new = len(graph.size)  # a stack of the carried values
        return replace(
            graph,
            size=np.r_[graph.size, self.stacks.missing * self.stacks.iterations],
            buffer=np.r_[buffer, new, new].astype(np.int32),
            node=np.r_[node, forward, backward].astype(np.int32),
            workspace=workspace,
        )

    def _accesses(self, graph: ScheduleGraph, forward: int, backward: int) -> tuple[I32, I32]:
        """Return the accesses of a graph without the dropped stacks, and with the copies' reads of the parent."""
        parent, stacks = self.parent, self.stacks
        canonical = parent.recording.allocations.canonical
        dropped = np.isin(stacks.copied_from[canonical], stacks.dropped.memory) & (parent.buffer >= 0)
        row, node = parent.row_reader
        elsewhere = dropped[row] & (node != forward) & (node != backward) & ~self._makes_only(dropped)[node]
        unread, stays = (np.zeros(len(graph.size), dtype=bool) for _ in range(2))
        unread[parent.buffer[dropped]] = True
        stays[parent.buffer[row[elsewhere]]] = True  # the program reads the stack for something else as well
        kept = ~unread[graph.buffer] | stays[graph.buffer] & (graph.node != backward)
        value, reader = stacks.forward.reader
        outer = value[self._copied[reader] & (stacks.forward.value_node[value] < 0)]
        outer = outer[self._computed_from_arrays[outer]]
        longer = np.unique(parent.buffer[np.isin(stacks.row_value, outer) & (parent.buffer >= 0) & ~dropped])
        node = np.r_[graph.node[kept], np.full(len(longer), backward)].astype(np.int32)
        return np.r_[graph.buffer[kept], longer].astype(np.int32), node

    def _makes_only(self, dropped: Mask) -> Mask:
        """Mark the parent's nodes whose results are all dropped."""
        parent = self.parent
        made = (parent.buffer >= 0) & (parent.row_node >= 0)
        found = marked(parent.graph.nodes, parent.row_node[made & dropped])
        found[parent.row_node[made & ~dropped]] = False
        return found

    @cached_property
    def _computed_from_arrays(self) -> Mask:
        """Mark values that are computed from arrays. Compilers recompute others, such as masks, where they are read."""
        parent, elements = self.parent, self.stacks.values.elements
        value, node = parent.reader
        reads = marked(parent.graph.nodes, node[elements[value] > 1])
        return reads[parent.value_node] | (parent.value_node < 0)
