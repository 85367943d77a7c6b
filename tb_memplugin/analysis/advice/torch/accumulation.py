"""PyTorch: half of the batch at a time, so that activations are half as large, and gradients of both halves add up."""

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
from tb_memplugin.sizes import bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    """Of activations alone: what else is as large as the batch is not known, and saves more."""
    if not recording.kind.has_tensor_stacks:
        return
    rows, role, at = recording.allocations, roles(recording), peak(recording).position
    activations = np.flatnonzero((role == Role.ACTIVATION) & (rows.charge > 0))
    live = activations[(rows.start[activations] <= at) & (at < rows.end[activations])]
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
        title="Two microbatches",
        sentence=f"{len(live)} activations, {bytes_text(size)}, wait for the backward pass at the peak. They are as "
        "large as the batch is, but for a few. Half of it at a time, with the gradients of the first half there while "
        f"the second is worked on, the peak is at least {bytes_text(saved.bytes)} lower; with more parts, lower still.",
        change="for part in batch.chunk(2): (loss_of(model, part) / 2).backward()  # then one optimizer.step()",
        rows=sort_by_size(recording, live),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _accumulated_gradients(recording: Recording, activations: I64, gradients: I64) -> Change:
    """Gradients are there from where the forward pass begins, for whose backward pass they are made.

    That is where the activations begin which live when the first gradient after them is made.
    """
    rows = recording.allocations
    made = gradients[rows.start[gradients] >= 0]
    ends = np.sort(rows.end[activations])
    first = np.sort(rows.start[activations])
    # An activation that began when as many had ended as begun opens a forward pass.
    opens = first[np.arange(len(first)) == np.searchsorted(ends, first, side="right")]
    begin = np.append(-1, opens)[np.searchsorted(opens, rows.start[made], side="right")]
    return Change(begin, rows.start[made], rows.charge[made])
