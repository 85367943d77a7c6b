"""Advice to rematerialize, with jax.checkpoint, tensors that the forward pass keeps for the backward pass.

Around a layer, only its inputs are kept; the backward pass recomputes everything else it reads when it reaches the
layer. Around the body of a scan, values are recomputed instead of being stacked for each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, cpu_note, saving, sort_by_size
from tb_memplugin.analysis.advice.support import scans
from tb_memplugin.analysis.advice.support.checkpointed_rows import CheckpointedLayers
from tb_memplugin.analysis.advice.support.passes import Layers, ProgramPasses, program_passes
from tb_memplugin.analysis.advice.support.repeated_layers import repeated_layers
from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot")
DOTS = "jax.checkpoint_policies.dots_saveable"
# XLA's CPU compiler drops the barriers between the two computations, and then merges them as common subexpressions.
# Loop bodies are not affected.
UNDONE = (
    "the saving is smaller, because the compiler merges the recomputation with the original, unless jax.jit gets "
    "compiler_options={'xla_disable_hlo_passes': 'cse_barrier_expander'}"
)


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for each family of layers, named or repeated, and for each scan."""
    passes = program_passes(recording)
    if passes is None or not passes.within(Pass.BACKWARD).any():
        return
    named = [piece for layers in passes.layers if (piece := _advise_layers(recording, passes, layers))]
    yield from named
    if (
        not named
        and (layers := repeated_layers(recording, passes))
        and (piece := _advise_layers(recording, passes, layers))
    ):
        yield piece
    yield from scans.advise(recording, passes)


def _advise_layers(recording: Recording, passes: ProgramPasses, layers: Layers) -> Advice | None:
    data = dataflow_graph(recording)
    if data is None:
        return None
    wrapped = CheckpointedLayers(recording, data, passes, layers)
    saved = saving(recording, wrapped.change(wrapped.saved))
    if saved is None:
        return None
    rows = recording.allocations
    product = wrapped.results_of(passes.does(*PRODUCTS))
    cheap = saving(recording, wrapped.change(np.setdiff1d(wrapped.saved, product), product)) if len(product) else None
    size = int(rows.size[wrapped.saved].sum())
    sentence = (
        f"The forward pass of {layers.several} keeps {counted(len(wrapped.saved), 'tensor')}, {bytes_text(size)}, "
        f"for the backward pass. Keeping only each layer's inputs, and recomputing the rest, {saved.effect}. The cost "
        "is one more forward pass."
    )
    if cheap is not None:
        sentence += f" With policy={DOTS}, which recomputes no matrix product, it {cheap.effect}."
    sentence += cpu_note(recording, UNDONE)
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize {layers.name}",
        sentence=sentence,
        change=f"{layers.function} = jax.checkpoint({layers.function})  # {layers.comment}"
        + (f"; or jax.checkpoint({layers.function}, policy={DOTS})" if cheap is not None else ""),
        rows=sort_by_size(recording, wrapped.saved),
        bytes=size,
        saving=saved,
    )
