"""PyTorch: advice to split the batch in two, so that activations are halved and gradients are accumulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.torch_roles import made_in_backward
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, replace_lifetimes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece with a lower bound of the saving: other tensors than activations may scale with the batch too."""
    if not recording.kind.has_tensor_stacks:
        return
    rows, role, position = recording.allocations, roles(recording), peak(recording).position
    activations = np.flatnonzero((role == Role.ACTIVATION) & (rows.charge > 0))
    live = activations[(rows.start[activations] <= position) & (position < rows.end[activations])]
    if not len(live) or not made_in_backward(recording).any():
        return
    own = lifetimes(recording).take(activations)
    halved = replace_lifetimes(recording, activations, own._replace(bytes=rows.charge[activations] // 2))
    saved = saving(
        recording,
        combine(halved, _accumulated_gradients(recording, activations, np.flatnonzero(role == Role.GRADIENT))),
    )
    if saved is None:
        return
    size = int(rows.charge[live].sum())
    yield Advice(
        kind=AdviceKind.MICROBATCHING,
        title="Use two microbatches",
        sentence=f"{counted(len(live), 'activation')}, {bytes_text(size)}, "
        f"{agree(len(live), 'is', 'are')} kept for the backward pass at the peak. Most activations scale with the "
        f"batch. Computing half of the batch at a time lowers the peak by at least {bytes_text(saved.bytes)}; this "
        "includes the accumulated gradients. More parts save more.",
        change="for part in batch.chunk(2): (loss_of(model, part) / 2).backward()  # then one optimizer.step()",
        rows=sort_by_size(recording, live),
        bytes=size,
        saving=saved,
    )


def _accumulated_gradients(recording: Recording, activations: I64, gradients: I64) -> Change:
    """Keep gradients from the beginning of their forward pass on.

    A forward pass begins with the first activation that is live when the next gradient is allocated.
    """
    rows = recording.allocations
    made = gradients[rows.start[gradients] >= 0]
    ends = np.sort(rows.end[activations])
    first = np.sort(rows.start[activations])
    # An activation that starts when all earlier ones have ended opens a forward pass.
    opens = first[np.arange(len(first)) == np.searchsorted(ends, first, side="right")]
    begin = np.append(-1, opens)[np.searchsorted(opens, rows.start[made], side="right")]
    return Change(begin, rows.start[made], rows.charge[made])
