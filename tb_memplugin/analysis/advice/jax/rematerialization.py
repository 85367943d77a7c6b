"""Advice to rematerialize, with jax.checkpoint, tensors that the forward pass keeps for the backward pass.

Around a layer, only its inputs are kept; the backward pass recomputes everything else it reads when it reaches the
layer. Around the body of a scan, values are recomputed instead of being stacked for each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    Saving,
    cpu_note,
    is_worthwhile,
    promise,
    sort_by_size,
)
from tb_memplugin.analysis.advice.support import scans
from tb_memplugin.analysis.advice.support.passes import PRODUCTS, Layers, ProgramPasses, program_passes
from tb_memplugin.analysis.advice.support.repeated_layers import repeated_layers
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.replay.program_graph import ProgramGraph, program_graph
from tb_memplugin.analysis.replay.recompute import LayerNodes, Recomputation
from tb_memplugin.analysis.replay.schedule_graph import lower_peak
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

DOTS = "jax.checkpoint_policies.dots_saveable"
# XLA's CPU compiler drops the barriers between the two computations, and then merges them as common subexpressions.
# Loop bodies are not affected.
UNDONE = (
    "the saving is smaller, because the compiler merges the recomputation with the original, unless jax.jit gets "
    "compiler_options={'xla_disable_hlo_passes': 'cse_barrier_expander'}"
)
CLEARLY = 1.1  # times as much; less is no better, and not worth a range
INEXACT = 1.05
IN_ORDER = 0.9  # of what recomputing saves in the program's own order, which the compiler does not keep exactly


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for each family of layers, named or repeated, and for each scan.

    A family that saves less than half of what another one saves is left out: its layers may be inside the others.
    """
    passes = program_passes(recording)
    if passes is None or not passes.within(Pass.BACKWARD).any():
        return
    of_scans = list(scans.advise(recording, passes))
    program = program_graph(recording)
    if program is not None:
        yield from _around_layers(program, passes, max((piece.saving_bytes for piece in of_scans), default=0))
    yield from of_scans


def _around_layers(program: ProgramGraph, passes: ProgramPasses, by_scans: int) -> list[Advice]:
    """Return pieces on layers outside of scans, which save `by_scans` bytes."""
    found = [piece for layers in passes.layers if (piece := _advise_layers(program, passes, layers))]
    most = max((piece.saving_bytes for piece in found), default=0)
    # Where layers have names and recomputing them saves nothing, another part of the same code hardly does.
    layers = repeated_layers(program.recording, passes) if found or not passes.layers else None
    other = _advise_layers(program, passes, layers) if layers is not None else None
    if other and other.saving_bytes > max(CLEARLY * most, by_scans):
        return [other]
    return [piece for piece in found if 2 * piece.saving_bytes > most]


def _advise_layers(program: ProgramGraph, passes: ProgramPasses, layers: Layers) -> Advice | None:
    recording, rows = program.recording, program.recording.allocations
    if _mostly_in_loops(program, passes.within(Pass.FORWARD) & (layers.instance >= 0)):
        return None
    nodes = layer_nodes(program, passes, layers)
    wrapped = Recomputation(program, nodes)
    dropped, unclear = (
        np.flatnonzero((program.buffer >= 0) & np.isin(passes.value, values))
        for values in (wrapped.dropped_values, wrapped.unclear_values)
    )
    size = int(rows.size[dropped].sum())
    saved = _saving(wrapped) if size > int(rows.size[unclear].sum()) else None
    if saved is None:
        return None
    sentence = (
        f"The forward pass of {layers.several} keeps {counted(len(dropped), 'tensor')}, {bytes_text(size)}, "
        f"for the backward pass. Keeping only each layer's inputs, and recomputing the rest, {saved.effect}. The cost "
        "is one more forward pass."
    )
    kept = _products(recording, passes)
    cheap = _saving(Recomputation(program, nodes, kept)) if np.isin(kept, wrapped.dropped_values).any() else None
    if cheap is not None:
        sentence += f" With policy={DOTS}, which recomputes no matrix product, it {cheap.effect}."
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize {layers.name}",
        sentence=sentence + cpu_note(recording, UNDONE),
        change=layers.code,
        rows=sort_by_size(recording, dropped),
        bytes=size,
        saving=saved,
    )


def _mostly_in_loops(program: ProgramGraph, positions: Mask) -> bool:
    """Return whether most of these positions are in the computations that loops run, not in the program's own."""
    assert program.recording.program is not None
    own = program.recording.program.computation.isin({program.recording.program.entry_computation})
    return bool(np.count_nonzero(positions & own) < np.count_nonzero(positions & ~own))


def layer_nodes(program: ProgramGraph, passes: ProgramPasses, layers: Layers) -> LayerNodes:
    """Return the layer of each operation in the forward pass, and after it."""
    at = program.position
    forward = passes.within(Pass.FORWARD)[at]
    after, instance = (at >= passes.backward_begins) & ~forward, layers.instance[at]
    return LayerNodes(
        np.where(forward, instance, -1).astype(np.int32), np.where(after, instance, -1).astype(np.int32), after,
        layers.count,
    )  # fmt: skip


def _products(recording: Recording, passes: ProgramPasses) -> I64:
    """Return the values that are matrix products of the forward pass. TPUs compute products inside other operations."""
    if recording.program is None or recording.program.backend is Backend.TPU:
        return np.empty(0, dtype=np.int64)
    products = np.append(passes.does(*PRODUCTS) & passes.within(Pass.FORWARD), False)
    return np.flatnonzero(products[passes.values.producer])


def _saving(layers: Recomputation) -> Saving | None:
    """Return what recomputing layers saves, if the compiler finds an order with a low peak.

    It saves less if the compiler does not, or if it already found such an order for the program without recomputation.
    """
    order, base, graph = layers.order, layers.program.graph, layers.graph
    if len(order) < graph.nodes:  # a cycle: the compiler merged operations of several layers
        return None
    before = base.peak(base.own_order)
    if before > INEXACT * peak(layers.program.recording).bytes:  # the compiler shares memory in ways not in the graph
        return None
    least = graph.peak(lower_peak(graph, order))
    saved = before - least
    alike, in_order = base.peak(lower_peak(base, base.own_order)) - least, before - graph.peak(order)
    bounds = [alike] if CLEARLY * alike < saved else []
    if CLEARLY * in_order < saved and is_worthwhile(layers.program.recording, in_order):
        bounds.append(int(IN_ORDER * in_order))
    return promise(layers.program.recording, saved, *bounds)
