"""The lifetimes of a program's rows if each layer is wrapped in jax.checkpoint."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.support.passes import Layers, ProgramPasses
from tb_memplugin.analysis.dataflow.graph import CsrGraph, DataflowGraph, row_of_value
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.replay.what_if import (
    NO_ROWS,
    Change,
    combine,
    concatenate_lifetimes,
    lifetimes,
    needed_bytes,
    replace_lifetimes,
)
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.recording import Recording


class CheckpointedLayers:
    """Layers that keep only their inputs, and recompute everything else when their backward pass begins.

    `saved` are the rows that a layer computes in the forward pass, that no other layer reads, and that the backward
    pass reads.
    """

    def __init__(self, recording: Recording, data: DataflowGraph, passes: ProgramPasses, layers: Layers) -> None:
        self.recording, self.made = recording, passes.made
        forward, again = passes.within(Pass.FORWARD), passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
        # The layer whose forward pass runs at each position, and the layer that computes each row.
        self.running = np.where(forward, layers.instance, -1)
        self.layer = np.where((self.made >= 0) & ~passes.is_argument, self.running[self.made], -1)
        self.forward_end = _last_of_each(self.running, layers.count)
        self.backward_start = _first_of_each(np.where(again, layers.instance, -1), layers.count)
        self.needed_forward = passes.last_use(forward)

        row, use = passes.uses
        reader = self.running[use]
        elsewhere = forward[use] & (reader != self.layer[row])
        # Values that another layer or the loss reads are passed on: the next layer's inputs are kept.
        passed_on = np.zeros(len(self.made), dtype=bool)
        passed_on[row[elsewhere]] = True
        read_again = (passes.last_use(again) >= 0) & (self.layer >= 0)
        self.saved: I64 = np.flatnonzero(read_again & ~passed_on)
        self.recomputed = self._recomputed_rows(data, np.flatnonzero(passed_on | passes.is_argument))

        # A backward pass that recomputes from a layer's inputs reads no other values of the forward pass.
        into = elsewhere & (reader >= 0) & ~passes.is_argument[row]
        pair = row * layers.count + np.maximum(reader, 0)
        own_input = np.isin(row * layers.count + layers.instance[use], pair[into])
        allowed = forward[use] | (layers.instance[use] < 0) | own_input
        until = np.full(len(self.made), -1, dtype=np.int64)
        np.maximum.at(until, row[allowed], use[allowed] + 1)
        np.maximum.at(until, row[into], np.minimum(self.backward_start[reader[into]] + 1, passes.length))
        self.inputs: I64 = np.union1d(row[into], np.flatnonzero(read_again & passed_on))
        self.until = np.where(recording.allocations.last_used >= passes.length, passes.length, until)

    def _recomputed_rows(self, data: DataflowGraph, stops: I64) -> I64:
        """Return all rows that recomputing `saved` computes, without those that are passed on between layers."""
        source, target = data.edges
        row = np.full(data.nodes, -1, dtype=np.int64)  # per node; only values have one
        of_value = row_of_value(self.recording)
        row[: len(of_value)] = of_value
        made_here = ~np.isin(row, stops)[source]
        back = CsrGraph.of(target[made_here], source[made_here], data.nodes)
        reached = row[back.reach(np.flatnonzero(np.isin(row, self.saved)).astype(np.int32)) != 0]
        found: I64 = np.unique(reached[reached >= 0])
        return found[self.layer[found] >= 0]

    def results_of(self, operations: Mask) -> I64:
        """Return the recomputed rows that these positions compute."""
        found: I64 = self.recomputed[operations[self.made[self.recomputed]]]
        return found

    def change(self, rows: I64, stay: I64 = NO_ROWS) -> Change:
        """Return the change if `rows` are recomputed, from the inputs and from the rows in `stay`, which are kept."""
        own = lifetimes(self.recording)
        start = self.backward_start[self.layer]
        first, again = own.take(rows), own.take(rows)
        first = first._replace(end=np.minimum(first.end, self.needed_forward[rows] + 1))
        again = again._replace(start=np.minimum(start[rows], again.end))
        inputs = own.take(np.setdiff1d(self.inputs, np.r_[rows, stay]))
        inputs = inputs._replace(end=np.maximum(self.until[inputs.row], inputs.start))
        kept = own.take(stay)
        kept = kept._replace(end=np.maximum(kept.end, start[stay] + 1))
        changed = np.concatenate([rows, inputs.row, stay])
        return combine(
            replace_lifetimes(self.recording, changed, concatenate_lifetimes(first, again, inputs, kept)),
            self._recompute_workspace(rows),
        )

    def _recompute_workspace(self, rows: I64) -> Change:
        """Return the largest temporary memory of each layer's recomputation, where its backward pass begins."""
        layer = self.layer[self.recomputed]
        during = lifetimes(self.recording).take(self.recomputed)
        during = during._replace(end=np.minimum(during.end, self.forward_end[layer] + 1))
        worst = np.zeros(len(self.backward_start), dtype=np.int64)
        busy = np.flatnonzero(self.running >= 0)
        np.maximum.at(worst, self.running[busy], needed_bytes(self.recording, during)[busy])
        again = np.bincount(self.layer[rows], self.recording.allocations.size[rows], len(worst)).astype(np.int64)
        return Change(self.backward_start, self.backward_start + 1, np.maximum(worst - again, 0))


def _last_of_each(which: I32, count: int) -> I64:
    """Return the last position of each number 0..count-1, -1 if it does not occur."""
    found = np.full(count, -1, dtype=np.int64)
    busy = np.flatnonzero(which >= 0)
    np.maximum.at(found, which[busy], busy)
    return found


def _first_of_each(which: I32, count: int) -> I64:
    """Return the first position of each number 0..count-1, len(which) if it does not occur."""
    found = np.full(count, len(which), dtype=np.int64)
    busy = np.flatnonzero(which >= 0)
    np.minimum.at(found, which[busy], busy)
    return found
