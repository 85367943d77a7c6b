"""What the forward pass keeps for the backward pass, where it could be computed again: jax.checkpoint.

Around a layer, its inputs are kept, and all else that the backward pass reads of it is made again when the backward
pass comes to the layer. Around the body of a scan, what the scan stacks up for each turn is not stacked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice import scans
from tb_memplugin.analysis.advice.passes import Bools, Layers, Passes, passes
from tb_memplugin.analysis.advice.piece import Advice, Kind, by_size, saving
from tb_memplugin.analysis.advice.repeats import repeats
from tb_memplugin.analysis.paths import Pass
from tb_memplugin.analysis.replay import (
    NOTHING,
    Change,
    curve,
    join,
    join_lives,
    lives,
    relived,
)
from tb_memplugin.recording import I32, I64, Recording
from tb_memplugin.sizes import bytes_text

PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot")
DOTS = "jax.checkpoint_policies.dots_saveable"


def advise(recording: Recording) -> Iterator[Advice]:
    known = passes(recording)
    if known is None or not known.within(Pass.BACKWARD).any():
        return
    named = [piece for layers in known.layers if (piece := _around_layers(recording, known, layers))]
    yield from named
    if not named and (layers := repeats(recording, known)) and (piece := _around_layers(recording, known, layers)):
        yield piece
    yield from scans.advise(recording, known)


def _around_layers(recording: Recording, known: Passes, layers: Layers) -> Advice | None:
    kept = _Kept(recording, known, layers)
    saved = saving(recording, kept.recomputed(kept.saved))
    if saved is None:
        return None
    rows = recording.allocations
    product = kept.made_by(known.does(*PRODUCTS))
    cheap = saving(recording, kept.recomputed(np.setdiff1d(kept.saved, product), product)) if len(product) else None
    size = int(rows.size[kept.saved].sum())
    sentence = (
        f"The forward pass of {layers.several} keeps {len(kept.saved)} tensors, {bytes_text(size)}, "
        f"until the backward pass reads them. If each layer keeps only its inputs and makes the rest again, the peak "
        f"is {bytes_text(saved.bytes)} lower, for one more forward pass."
    )
    if cheap is not None:
        sentence += f" With policy={DOTS}, which repeats no matrix product, it is {bytes_text(cheap.bytes)} lower."
    return Advice(
        kind=Kind.REMATERIALIZATION,
        title=f"Rematerialize {layers.name}",
        sentence=sentence,
        change=f"{layers.function} = jax.checkpoint({layers.function})  # {layers.comment}"
        + (f"; or jax.checkpoint({layers.function}, policy={DOTS})" if cheap is not None else ""),
        rows=by_size(recording, kept.saved),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


class _Kept:
    """What the layers' forward passes make and read, and when it is needed where they are checkpointed."""

    def __init__(self, recording: Recording, known: Passes, layers: Layers) -> None:
        self.recording = recording
        forward, made = known.within(Pass.FORWARD), known.made
        self.made = made
        again = known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)
        self.running = np.where(forward, layers.instance, -1)  # per position
        self.forward_end = _last_of_each(self.running, layers.count)
        self.backward_start = _first_of_each(np.where(again, layers.instance, -1), layers.count)
        self.layer = np.where(made >= 0, self.running[made], -1)  # per row
        self.layer[_arguments(known)] = -1

        row, use = known.uses
        reader = self.running[use]
        elsewhere = forward[use] & (reader != self.layer[row])
        # What another layer or the loss reads is passed on: the next layer's input is kept.
        passed_on = np.zeros(len(made), dtype=bool)
        passed_on[row[elsewhere]] = True
        self.needed_forward = known.last_use(forward)
        read_again = (known.last_use(again) >= 0) & (self.layer >= 0)
        self.saved: I64 = np.flatnonzero(read_again & ~passed_on)

        # A layer's backward pass that stands alone reads the layer's own inputs, and no other forward values.
        into = np.flatnonzero(elsewhere & (reader >= 0) & ~_arguments(known)[row])
        pairs = row[into] * layers.count + reader[into]
        own_input = np.isin(row * layers.count + layers.instance[use], pairs)
        allowed = forward[use] | (layers.instance[use] < 0) | own_input
        until = np.full(len(made), -1, dtype=np.int64)
        np.maximum.at(until, row[allowed], use[allowed] + 1)
        np.maximum.at(until, row[into], np.minimum(self.backward_start[reader[into]] + 1, known.length))
        self.inputs: I64 = np.union1d(row[into], np.flatnonzero(read_again & passed_on))
        results = recording.allocations.last_used >= known.length
        self.until = np.where(results, known.length, np.minimum(until, known.length))
        self.mine = self._made_again(known)

    def _made_again(self, known: Passes) -> I64:
        """What must be made to make what is saved, within each layer."""
        row, use = known.uses
        target, source = (
            np.flatnonzero(self.layer >= 0),
            np.flatnonzero((self.layer[row] >= 0) & (self.running[use] >= 0)),
        )
        order = np.argsort(known.made[target], kind="stable")
        target = target[order]
        first, last = (np.searchsorted(known.made[target], use[source], side) for side in ("left", "right"))
        count = last - first
        made = target[
            np.repeat(first, count) + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        ]
        of = np.repeat(row[source], count)
        inside = self.layer[of] == self.layer[made]
        needed = np.zeros(len(self.layer), dtype=bool)
        needed[self.saved] = True
        while True:
            more = of[inside & needed[made] & ~needed[of]]
            if not len(more):
                return np.flatnonzero(needed)
            needed[more] = True

    def made_by(self, operations: Bools) -> I64:
        """Rows that these positions make in a layer, and that what is saved is made of."""
        found: I64 = self.mine[operations[self.made[self.mine]]]
        return found

    def recomputed(self, rows: I64, products: I64 = NOTHING) -> Change:
        """These rows are made again at the start of their layer's backward pass, where the `products` still are."""
        own = lives(self.recording)
        first, again, kept = own.take(rows), own.take(rows), own.take(np.setdiff1d(self.inputs, rows))
        stay = own.take(products)
        stay = stay._replace(end=np.maximum(stay.end, self.backward_start[self.layer[products]] + 1))
        first = first._replace(end=np.minimum(first.end, self.needed_forward[rows] + 1))
        again = again._replace(start=np.minimum(self.backward_start[self.layer[rows]], again.end))
        kept = kept._replace(end=np.maximum(self.until[kept.row], kept.start))
        kept = kept.take(~np.isin(kept.row, products))
        changed = np.concatenate([rows, kept.row, products])
        return join(relived(self.recording, changed, join_lives(first, again, kept, stay)), self._work(rows))

    def _work(self, rows: I64) -> Change:
        """What making them again needs beside them, at its worst, where the backward pass of a layer begins."""
        layer = self.layer[self.mine]
        during = lives(self.recording).take(self.mine)
        during = during._replace(end=np.minimum(during.end, self.forward_end[layer] + 1))
        working = np.zeros(len(self.backward_start), dtype=np.int64)
        busy = np.flatnonzero(self.running >= 0)
        np.maximum.at(working, self.running[busy], curve(self.recording, during)[busy])
        again = np.bincount(self.layer[rows], self.recording.allocations.size[rows], len(working)).astype(np.int64)
        return Change(self.backward_start, self.backward_start + 1, np.maximum(working - again, 0))


def _last_of_each(which: I32, count: int) -> I64:
    """Per number 0..count-1: the last position that has it."""
    found = np.full(count, -1, dtype=np.int64)
    busy = np.flatnonzero(which >= 0)
    np.maximum.at(found, which[busy], busy)
    return found


def _first_of_each(which: I32, count: int) -> I64:
    """Per number: the first position that has it; their number where none has."""
    found = np.full(count, len(which), dtype=np.int64)
    busy = np.flatnonzero(which >= 0)
    np.minimum.at(found, which[busy], busy)
    return found


def _arguments(known: Passes) -> Bools:
    """Per row: whether it is an argument, and so there all along."""
    found: Bools = (known.value >= 0) & (known.values.argument[known.value] >= 0)
    return found
