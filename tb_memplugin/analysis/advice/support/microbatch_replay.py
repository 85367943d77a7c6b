"""The peak of a training step that computes half of its batch at a time and sums up gradients."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.model import Saving, saving
from tb_memplugin.analysis.advice.support.batch_values import BatchValues
from tb_memplugin.analysis.advice.support.compiler_limit import memory_limit
from tb_memplugin.analysis.replay.compiler_recomputation import keep_instead
from tb_memplugin.analysis.replay.what_if import (
    Change,
    RowLifetimes,
    combine,
    concatenate_lifetimes,
    lifetimes,
    peak_after,
    place_in_outputs,
    replace_lifetimes,
)
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording

PARTS = 2


def microbatch_saving(
    recording: Recording, values: BatchValues, copies: I64, delayed: tuple[int, int] | None
) -> Saving | None:
    """Return the saving of two passes over half of the batch each.

    What the compiler computes again to fit the whole batch is kept if half of the batch then fits.
    """
    own = lifetimes(recording).take(values.scaled)
    kept = keep_instead(recording, own)
    if len(kept.row) < len(own.row):
        changes = _changes(recording, values, kept, copies, delayed)
        if peak_after(recording, changes[0]).bytes <= memory_limit(recording):
            return saving(recording, *changes)
    return saving(recording, *_changes(recording, values, own, copies, delayed))


def _changes(
    recording: Recording, values: BatchValues, whole: RowLifetimes, copies: I64, delayed: tuple[int, int] | None
) -> list[Change]:
    """Return the change by two passes over half of the batch each, between which the sum of gradients stays.

    The first change is the expected one. Each gradient is added to the sum once it is computed, or waits for the end as
    it does now: the compiler decides.
    A loop over layers collects the gradients of all layers before they are added. What is computed from weights alone,
    such as casts, is computed before the loop, as are `copies`. `whole` is what half of the batch halves.
    """
    table, own = recording.allocations, lifetimes(recording)
    size = table.size[whole.row]
    half = whole._replace(bytes=size // PARTS)
    waiting, stacked = own.take(values.gradients), own.take(values.stacked)
    at_once = own.take(np.setdiff1d(values.gradients, values.stacked))
    computed = at_once._replace(end=np.minimum(at_once.end, at_once.start + 1))
    summed = at_once._replace(start=np.maximum(at_once.start, values.end))
    before = own.take(values.invariant)
    before = before._replace(start=np.full(len(before.row), -1), end=np.maximum(before.end, values.end))
    rows = np.concatenate([values.scaled, values.gradients, values.invariant])
    copied = Change(np.full(len(copies), -1), np.full(len(copies), values.end), copies)
    placed = place_in_outputs(recording, copied)
    added = concatenate_lifetimes(computed, summed, stacked)
    cases = [(half, added, placed), (half, waiting, placed), (half, added, copied)]
    if delayed is not None:
        cases.append((whole._replace(bytes=size * delayed[0] // delayed[1]), added, placed))
    changes = []
    for examples, gradients, further in cases:
        after = concatenate_lifetimes(examples, before, gradients.take(gradients.end > gradients.start))
        total = _total(recording, values.trained, values.end)
        changes.append(combine(replace_lifetimes(recording, rows, after), total, further))
    return changes


def _total(recording: Recording, trained: I64, end: int) -> Change:
    """Return the sum of gradients, as large as the trained arguments. GPUs keep it in idle memory of results."""
    count, size = len(trained), recording.allocations.size[trained]
    total = Change(np.full(count, -1), np.full(count, end), size)
    on_tpu = recording.program is not None and recording.program.backend is Backend.TPU
    return total if on_tpu else place_in_outputs(recording, total)
