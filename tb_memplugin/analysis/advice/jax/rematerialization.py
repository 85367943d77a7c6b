"""What the forward pass keeps for the backward pass, where it could be computed again: jax.checkpoint.

Around a layer, its inputs are kept, and all else that the backward pass reads of it is made again when the backward
pass comes to the layer. Around the body of a scan, what the scan stacks up for each turn is not stacked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, Kind, by_size, on_cpu, saving
from tb_memplugin.analysis.advice.support import scans
from tb_memplugin.analysis.advice.support.checkpointed_rows import Checkpointed
from tb_memplugin.analysis.advice.support.passes import Layers, Passes, passes
from tb_memplugin.analysis.advice.support.repeated_layers import repeats
from tb_memplugin.analysis.dataflow.graph import flow
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
    known = passes(recording)
    if known is None or not known.within(Pass.BACKWARD).any():
        return
    named = [piece for layers in known.layers if (piece := _around_layers(recording, known, layers))]
    yield from named
    if not named and (layers := repeats(recording, known)) and (piece := _around_layers(recording, known, layers)):
        yield piece
    yield from scans.advise(recording, known)


def _around_layers(recording: Recording, known: Passes, layers: Layers) -> Advice | None:
    data = flow(recording)
    if data is None:
        return None
    wrapped = Checkpointed(recording, data, known, layers)
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
    sentence += on_cpu(recording, UNDONE)
    return Advice(
        kind=Kind.REMATERIALIZATION,
        title=f"Rematerialize {layers.name}",
        sentence=sentence,
        change=f"{layers.function} = jax.checkpoint({layers.function})  # {layers.comment}"
        + (f"; or jax.checkpoint({layers.function}, policy={DOTS})" if cheap is not None else ""),
        rows=by_size(recording, wrapped.saved),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
