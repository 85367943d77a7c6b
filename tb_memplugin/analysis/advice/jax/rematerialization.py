"""What the forward pass keeps for the backward pass, where it could be computed again: jax.checkpoint.

Around a layer, its inputs are kept, and all else that the backward pass reads of it is made again when the backward
pass comes to the layer. Around the body of a scan, what the scan stacks up for each turn is not stacked.
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
from tb_memplugin.sizes import bytes_text

PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot")
DOTS = "jax.checkpoint_policies.dots_saveable"
# It drops the barriers between the two first, and then finds them to be the same. A loop's body it leaves alone.
UNDONE = (
    "it is less: its compiler keeps what should be made again, unless jax.jit is given "
    "compiler_options={'xla_disable_hlo_passes': 'cse_barrier_expander'}"
)


def advise(recording: Recording) -> Iterator[Advice]:
    known = program_passes(recording)
    if known is None or not known.within(Pass.BACKWARD).any():
        return
    named = [piece for layers in known.layers if (piece := _advise_layers(recording, known, layers))]
    yield from named
    if (
        not named
        and (layers := repeated_layers(recording, known))
        and (piece := _advise_layers(recording, known, layers))
    ):
        yield piece
    yield from scans.advise(recording, known)


def _advise_layers(recording: Recording, known: ProgramPasses, layers: Layers) -> Advice | None:
    data = dataflow_graph(recording)
    if data is None:
        return None
    wrapped = CheckpointedLayers(recording, data, known, layers)
    saved = saving(recording, wrapped.change(wrapped.saved))
    if saved is None:
        return None
    rows = recording.allocations
    product = wrapped.results_of(known.does(*PRODUCTS))
    cheap = saving(recording, wrapped.change(np.setdiff1d(wrapped.saved, product), product)) if len(product) else None
    size = int(rows.size[wrapped.saved].sum())
    sentence = (
        f"The forward pass of {layers.several} keeps {len(wrapped.saved)} tensors, {bytes_text(size)}, "
        f"until the backward pass reads them. If each layer keeps only its inputs and makes the rest again, the peak "
        f"is {bytes_text(saved.bytes)} lower, for one more forward pass."
    )
    if cheap is not None:
        sentence += f" With policy={DOTS}, which repeats no matrix product, it is {bytes_text(cheap.bytes)} lower."
    sentence += cpu_note(recording, UNDONE)
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize {layers.name}",
        sentence=sentence,
        change=f"{layers.function} = jax.checkpoint({layers.function})  # {layers.comment}"
        + (f"; or jax.checkpoint({layers.function}, policy={DOTS})" if cheap is not None else ""),
        rows=sort_by_size(recording, wrapped.saved),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
