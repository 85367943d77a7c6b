"""Advice to split the batch in two: tensors that scale with the batch are halved, and gradients are accumulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, memory_limit, saving, sort_by_size
from tb_memplugin.analysis.advice.support.batch import (
    Batch,
    BatchValues,
    accumulates_gradients,
    batch_values,
    cast_bytes,
    find_batch,
    used_inputs,
)
from tb_memplugin.analysis.advice.support.passes import ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.compiler_recomputation import keep_instead
from tb_memplugin.analysis.replay.what_if import (
    NO_ROWS,
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
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

PARTS = 2


def microbatch_saving(
    recording: Recording, values: BatchValues, copies: I64, delayed: tuple[int, int] | None
) -> Saving | None:
    """Return the saving of two passes over half of the batch each.

    Values that the compiler recomputes to fit the whole batch are kept if half of the batch fits without.
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

    The first change is the expected one. The compiler decides whether each gradient is added to the sum once it is
    computed, or waits for the end as it does now. A loop over layers collects the gradients of all layers before they
    are added. Values computed from weights alone, such as casts, and `copies`, are computed before the loop. Half of
    the batch halves the rows `whole`.
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
    return total if recording.backend is Backend.TPU else place_in_outputs(recording, total)


INTERLEAVED = "  # every second example: each device splits its own"
# Examples per part. For fewer than a TPU's tile has rows, XLA moves parts of the images to the batch, with copies and
# halos (its space-to-batch conversion), so that half of the batch may need more memory.
MIN_CONVOLVED = 8
# XLA's GPU scheduler delays the weight gradients of some convolutions in a loop's body, so the tensors that they read
# stay. Compiled networks then took up to this share of the memory of the whole batch, instead of a half.
DELAYED_SHARE = 11, 16
CODE = """def mean_gradients(params, batch):
    parts = jax.tree.map({split}, batch){reason}

    def add(total, part):
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, part)), None

    zeros = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
    total, _ = jax.lax.scan(add, zeros, parts)
    return jax.tree.map(lambda a: a / 2, total)

value, grads = mean_gradients(params, batch)  # instead of jax.value_and_grad(loss)(params, batch)"""


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for a training step whose inputs have a batch dimension that splits in two on each device.

    Programs that accumulate gradients already get none.
    """
    passes, graph, step = program_passes(recording), dataflow_graph(recording), training_step(recording)
    if passes is None or graph is None or step is None or accumulates_gradients(recording, graph, step):
        return
    given = np.flatnonzero(passes.is_argument & (roles(recording) == Role.INPUT))
    rows, inputs = used_inputs(graph, step, given)
    batch = find_batch(recording, graph, step, rows)
    if batch is None or batch.size % PARTS:
        return
    convolves = _convolves(passes)
    if convolves and recording.backend is Backend.TPU and batch.size // PARTS < MIN_CONVOLVED:
        return
    values = batch_values(recording, graph, step, passes, inputs, batch.size)
    share = DELAYED_SHARE if convolves and recording.backend is Backend.GPU else None
    copied = recording.allocations.size[batch.rows] if batch.devices > 1 else NO_ROWS
    further = np.concatenate([cast_bytes(recording, graph), copied])
    saved = microbatch_saving(recording, values, further, share) if len(values.scaled) else None
    if saved is not None:
        yield _advice(recording, batch, values, saved)


def _convolves(passes: ProgramPasses) -> bool:
    """Return whether most products of the forward pass are convolutions."""
    counts = [
        np.count_nonzero(passes.does(kind) & passes.within(Pass.FORWARD))
        for kind in ("conv_general_dilated", "dot_general")
    ]
    return bool(counts[0] > counts[1])


def _advice(recording: Recording, batch: Batch, values: BatchValues, saved: Saving) -> Advice:
    table, scaled = recording.allocations, values.scaled
    size, total = int(table.size[scaled].sum()), int(table.size[values.trained].sum())
    on_device = f", {batch.size // PARTS} on each device" if batch.devices > 1 else ""
    part_of = f", {batch.size} on each device" if batch.devices > 1 else ""
    return Advice(
        kind=AdviceKind.MICROBATCHING,
        title=f"Use two microbatches of {batch.whole // PARTS}{on_device}",
        sentence=f"{counted(len(scaled), 'tensor')} of the forward and backward passes "
        f"{agree(len(scaled), 'scales', 'scale')} with the batch of {batch.whole}{part_of}. Computing half of the "
        f"batch at a time {saved.effect}; this includes {bytes_text(total)} to accumulate gradients. The loss must be "
        "a mean over examples. More parts save more.",
        change=CODE.format(split=_split(batch), reason=INTERLEAVED if batch.devices > 1 else ""),
        rows=sort_by_size(recording, scaled),
        bytes=size,
        saving=saved,
    )


def _split(batch: Batch) -> str:
    """Return the code that gives each input a first dimension of two parts."""
    before, after = ("-1, 2", 1) if batch.devices > 1 else ("2, -1", 0)
    at = batch.dimension
    shape = f"a.reshape({f'*a.shape[:{at}], ' if at else ''}{before}, *a.shape[{at + 1}:])"
    return f"lambda a: {shape}" if at + after == 0 else f"lambda a: jnp.moveaxis({shape}, {at + after}, 0)"
