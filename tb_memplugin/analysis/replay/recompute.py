"""A training step whose layers are recomputed in the backward pass, as a schedule graph."""

from dataclasses import dataclass, field, replace

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph
from tb_memplugin.analysis.replay.program_graph import ProgramGraph
from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph
from tb_memplugin.model.arrays import I32, I64, Mask, largest_per, marked, smallest_per
from tb_memplugin.model.lazy import cached_property


@dataclass(frozen=True, eq=False)
class LayerNodes:
    """The layer whose forward or backward pass each node belongs to, -1 for none."""

    forward: I32
    backward: I32
    after_forward: Mask  # nodes of the backward pass and of what follows it
    count: int


@dataclass(frozen=True, eq=False)
class Recomputation:
    """Layers that keep their inputs, and the values in `kept`, and recompute the others before their backward pass.

    Copies of the forward nodes compute those values again: the nodes from `program.graph.nodes` on.
    """

    program: ProgramGraph
    layers: LayerNodes
    kept: I64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # values

    @cached_property
    def _made_in(self) -> I32:
        """Per value: the layer whose forward pass computes it, -1 for none."""
        node = self.program.value_node
        return np.where(node >= 0, self.layers.forward[node], -1).astype(np.int32)

    @cached_property
    def _passed_on(self) -> Mask:
        """Mark the reads of a layer's values by the rest of the forward pass, such as by the next layer."""
        value, node = self.program.reader
        made_in = self._made_in[value]
        found: Mask = (made_in >= 0) & ~self.layers.after_forward[node] & (self.layers.forward[node] != made_in)
        return found

    @cached_property
    def _replaced_reads(self) -> tuple[Mask, Mask]:
        """Mark the reads (of `program.reader`) that read a recomputed value instead, and those that are not needed.

        A layer keeps its inputs. If its backward pass reads inner values of an earlier layer, it reads its inputs
        instead: the compiler had derived these from the inner values.
        """
        value, node = self.program.reader
        layers, made_in, passed_on = self.layers, self._made_in[value], self._passed_on
        again = layers.after_forward[node]
        is_input = marked(len(self._made_in), value[passed_on])
        pairs = _pair(value[passed_on], layers.forward[node[passed_on]], layers.count)
        reader = layers.backward[node]
        own_input = np.isin(_pair(value, reader, layers.count), pairs) | (reader < 0)
        read_again = (made_in >= 0) & again & ~np.isin(value, self.kept)
        read_again &= ~(is_input[value] & (reader != made_in) & own_input)
        return read_again & (reader <= made_in), read_again & (reader > made_in)

    @cached_property
    def dropped_values(self) -> I64:
        """The values that are only recomputed for the backward pass, and no longer kept for it."""
        value = self.program.reader[0]
        return np.setdiff1d(value[self._replaced_reads[0]], value[self._passed_on]).astype(np.int64)

    def absent(self, values: I32) -> tuple[I32, I32]:
        """Return, for values that are recomputed, the node after which each is dropped, and the one that needs it."""
        value, node = self.program.reader
        kept = ~(self._replaced_reads[0] | self._replaced_reads[1])
        read = largest_per(value[kept], node[kept], len(self._made_in), -1)[values]
        last = np.maximum(read, self.program.value_node[values])
        return last.astype(np.int32), self._first_reader[self._made_in[values]].astype(np.int32)

    @cached_property
    def unclear_values(self) -> I64:
        """The values that are read by a later layer and by their own layer's backward pass.

        If the compiler fused the end of a layer with the next layer, these values are not the layer's result, and it is
        unclear which values the layer keeps when it is recomputed.
        """
        value, node = self.program.reader
        again = self.layers.after_forward[node] & (self.layers.backward[node] == self._made_in[value])
        return np.intersect1d(value[self._passed_on], value[again & (self._made_in[value] >= 0)]).astype(np.int64)

    @cached_property
    def _inner_reads(self) -> Mask:
        """Mark the reads of a value by the forward pass of the layer that computes it."""
        value, node = self.program.reader
        made_in = self._made_in[value]
        inner: Mask = (made_in >= 0) & (self.layers.forward[node] == made_in) & ~np.isin(value, self.kept)
        return inner

    @cached_property
    def copies(self) -> I64:
        """The forward nodes that are run again."""
        value, node = self.program.reader
        inner = self._inner_reads
        needs = CsrGraph.of(node[inner], self.program.value_node[value[inner]], self.program.graph.nodes)
        seeds = self.program.value_node[value[self._replaced_reads[0]]]
        return np.flatnonzero(needs.reach(np.unique(seeds).astype(np.int32)))

    @cached_property
    def _copy_of(self) -> I32:
        """Per node of the program: the number of its copy, -1 for none."""
        number = np.full(self.program.graph.nodes, -1, dtype=np.int32)
        number[self.copies] = self.program.graph.nodes + np.arange(len(self.copies))
        return number

    @cached_property
    def graph(self) -> ScheduleGraph:
        base = self.program.graph
        source, target = self._edges
        buffers, buffer, node = self._accesses
        made = ScheduleGraph(
            source, target, np.r_[base.size, base.size[buffers]], buffer, node,
            np.r_[base.workspace, base.workspace[self.copies]], base.constant,
        )  # fmt: skip
        return self._with_gates(made)

    @property
    def order(self) -> I32:
        """An order in which each layer is recomputed right before its backward pass; shorter if there is none."""
        return self._sorted(self.graph, self._first_reader - 1)

    def _sorted(self, graph: ScheduleGraph, place: I64) -> I32:
        """Return the program's order, in which the copies of each layer come after the layer's place."""
        copies = self.copies
        within = (np.arange(len(copies)) + 1) / (len(copies) + 1)
        return graph.sorted_by(np.r_[np.arange(self.program.graph.nodes), place[self.layers.forward[copies]] + within])

    @cached_property
    def _first_reader(self) -> I64:
        """Per layer: the first node that reads a recomputed value of the layer."""
        value, node = self.program.reader
        replaced = self._replaced_reads[0]
        layer = self._made_in[value[replaced]]
        return smallest_per(layer, node[replaced], self.layers.count, self.program.graph.nodes)

    @property
    def _edges(self) -> tuple[I32, I32]:
        base, copy_of = self.program.graph, self._copy_of
        value, node = self.program.reader
        makes = self.program.value_node[value]
        replaced, inner = self._replaced_reads[0], self._inner_reads
        copied = (copy_of[node] >= 0) & (makes >= 0)
        from_copy = copied & inner & (copy_of[makes] >= 0)
        from_input = copied & ~from_copy
        source = np.r_[base.source, copy_of[makes[replaced]], copy_of[makes[from_copy]], makes[from_input]]
        target = np.r_[base.target, node[replaced], copy_of[node[from_copy]], copy_of[node[from_input]]]
        return source.astype(np.int32), target.astype(np.int32)

    @property
    def _accesses(self) -> tuple[I64, I32, I32]:
        """Return the buffers that copies write, and all accesses; new buffers are numbered after the old ones."""
        program, copy_of = self.program, self._copy_of
        row_value = program.data.value
        row, node = program.row_reader
        used = program.buffer[row] >= 0
        row, node = row[used], node[used]
        key, wanted = _pair(*program.reader, program.graph.nodes), _pair(row_value[row], node, program.graph.nodes)
        at = np.searchsorted(key, wanted)  # each read of a row is a read of its value
        replaced, dropped = (mask[at] for mask in self._replaced_reads)
        inner = self._inner_reads[at]
        made = np.flatnonzero((program.buffer >= 0) & (program.row_node >= 0))
        # A row that overwrites a recomputed one in place is in the copy's buffer.
        shared = marked(len(program.graph.size), program.buffer[row[replaced]])
        moved = np.zeros(len(program.buffer), dtype=bool)
        moved[made] = shared[program.buffer[made]] & self.layers.after_forward[program.row_node[made]]
        copied = made[copy_of[program.row_node[made]] >= 0]
        buffers = np.unique(np.r_[program.buffer[copied], program.buffer[moved]]).astype(np.int64)
        new = np.full(len(shared), -1, dtype=np.int32)
        new[buffers] = len(shared) + np.arange(len(buffers))
        stays = ~dropped & ~replaced & ~moved[row]
        by_copy = np.flatnonzero(copy_of[node] >= 0)
        inner_copy = inner[by_copy] & (copy_of[program.row_node[row[by_copy]]] >= 0)
        old, made_here = program.buffer, made[~moved[made]]
        fresh = replaced | moved[row]
        accesses = (
            (old[made_here], program.row_node[made_here]),
            (old[row[stays]], node[stays]),
            (new[old[copied]], copy_of[program.row_node[copied]]),
            (new[old[moved]], program.row_node[moved]),
            (new[old[row[fresh]]], node[fresh]),
            (np.where(inner_copy, new[old[row[by_copy]]], old[row[by_copy]]), copy_of[node[by_copy]]),
        )
        buffer, accessing = (np.concatenate(column).astype(np.int32) for column in zip(*accesses, strict=True))
        return buffers, buffer, accessing

    def _with_gates(self, graph: ScheduleGraph) -> ScheduleGraph:
        """Make each layer's copies wait for the gradient of the layer's result, as jax.checkpoint's barriers do.

        The gradient is the largest value that the layer's backward pass reads from that of a later layer. Copies cannot
        wait for a value that depends on them, because the compiler merged operations of both layers.
        """
        value, node = self.program.reader
        layers, makes = self.layers, self.program.value_node[value]
        layer = layers.backward[node]
        arrives = (makes >= 0) & (layer >= 0) & layers.after_forward[node]
        arrives &= layers.after_forward[np.maximum(makes, 0)] & (layers.backward[np.maximum(makes, 0)] > layer)
        order = np.flatnonzero(arrives)
        elements = self.program.data.values.elements
        order = order[np.lexsort((makes[order], -elements[value[order]]))]
        # If all copies run as late as possible, nodes before a layer's copies do not depend on these.
        late = self._sorted(graph, self.program.graph.nodes + np.arange(layers.count, 0, -1, dtype=np.int64))
        if len(late) < graph.nodes:
            return graph
        step = np.empty(graph.nodes, dtype=np.int64)
        step[late] = np.arange(graph.nodes)
        number, of_layer = self._copy_of[self.copies], layers.forward[self.copies]
        begins = smallest_per(of_layer, step[number], layers.count, graph.nodes)
        order = order[step[makes[order]] < begins[layer[order]]]
        gated, first = np.unique(layer[order], return_index=True)
        gate = np.full(layers.count, -1, dtype=np.int32)
        gate[gated] = makes[order[first]]
        waits = gate[of_layer] >= 0
        return replace(
            graph,
            source=np.r_[graph.source, gate[of_layer[waits]]].astype(np.int32),
            target=np.r_[graph.target, number[waits]].astype(np.int32),
        )


def _pair(left: I32 | I64, right: I32 | I64, count: int) -> I64:
    return left.astype(np.int64) * (count + 1) + right + 1
