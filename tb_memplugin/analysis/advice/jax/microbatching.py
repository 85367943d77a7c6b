"""Advice to split the batch: tensors that scale with the batch shrink to a part, and gradients are accumulated."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.jax.shapes import share_of_batch
from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    Saving,
    Work,
    memory_limit,
    promise,
    saving,
    sort_by_size,
)
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
    new_memory,
    peak_after,
    place_in_outputs,
    replace_lifetimes,
)
from tb_memplugin.analysis.usage.headroom import fits_after
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

# Times the weights' bytes that each further part reads and writes, at most: weights and their casts in both passes, its
# gradients and their sums; and what the sums take once.
MOVED_BY_PART, MOVED = 10, 3
# Numbers of parts, and one part, in words. Two save most of what more save, so only what does not fit gets more.
PARTS = {2: ("two", "half"), 4: ("four", "a fourth"), 8: ("eight", "an eighth"), 16: ("sixteen", "a sixteenth")}
# The stored program for H100 that was compiled again saved 0.875 of what is expected. The six for TPU saved their
# lower bounds.
HOLDS_ON_GPU = 0.85


class BatchParts(NamedTuple):
    """A batch in parts, each of which gets a pass of its own, in a loop."""

    values: BatchValues
    copies: Sequence[I64]  # sizes of copies that are made before the loop: those that are certain, and possible ones
    delayed: tuple[int, int] | None  # the share of the whole batch's memory that delayed gradients may need
    batch: int
    parts: int


def _saving(recording: Recording, split: BatchParts) -> Saving | None:
    """Return the saving of a pass over each part of the batch.

    What the compiler computes again to fit the whole batch, it keeps as far as a part of the batch then fits.
    """
    own = lifetimes(recording).take(split.values.scaled)
    holds = HOLDS_ON_GPU if recording.backend is Backend.GPU else 1
    repeating = saving(recording, *_changes(recording, split, own), holds=holds)
    kept = keep_instead(recording, own)
    if len(kept.row) == len(own.row) or repeating is None:
        return repeating
    changes, limit = _changes(recording, split, kept), memory_limit(recording)
    excess = repeating.before - limit
    if repeating.at_least < excess:  # it does not fit yet
        return repeating
    after = [peak_after(recording, change).bytes for change in changes]
    least = repeating.before - max(after)
    bounds = (repeating.before - after[0], least, repeating.before - min(after)) if after[0] <= limit else (excess,)
    found = promise(recording, *bounds, replay=changes[after.index(max(after))])
    return found and replace(found, if_repeated=repeating.at_least, repeating=repeating.replay)


def _changes(recording: Recording, split: BatchParts, whole: RowLifetimes) -> list[Change]:
    """Return the change by a pass over each part of the batch, between which the sum of gradients stays.

    The first change is the expected one. Each gradient is added to the sum once it is computed, or waits for the end as
    it does now: the compiler decides.
    A loop over layers collects the gradients of all layers before they are added. What is computed from weights alone,
    such as casts, is computed before the loop, as are copies.
    `whole` is what a part of the batch needs a part of.
    """
    values, copies, delayed, batch, parts = split
    table, own = recording.allocations, lifetimes(recording)
    size = table.size[whole.row]
    shapes, of_row = np.unique(table.shape.codes[whole.row], return_inverse=True)
    share = [share_of_batch(table.shape.strings[code] if code >= 0 else "", batch, parts) for code in shapes.tolist()]
    part = whole._replace(bytes=(size * np.array(share)[of_row]).astype(np.int64))
    waiting, stacked = own.take(values.gradients), own.take(values.stacked)
    at_once = own.take(np.setdiff1d(values.gradients, values.stacked))
    computed = at_once._replace(end=np.minimum(at_once.end, at_once.start + 1))
    summed = at_once._replace(start=np.maximum(at_once.start, values.end))
    before = own.take(values.invariant)
    before = before._replace(start=np.full(len(before.row), -1), end=np.maximum(before.end, values.end))
    rows = np.concatenate([values.scaled, values.gradients, values.invariant])
    sure, all_copies = (_before_loop(sizes, values.end) for sizes in (copies[0], np.concatenate(copies)))
    placed = place_in_outputs(recording, sure)
    added = concatenate_lifetimes(computed, summed, stacked)
    total = _before_loop(table.size[values.trained], values.end)
    # GPUs keep the sum of gradients in idle memory of results, as TPUs did in 10 of 14 programs.
    in_results = place_in_outputs(recording, total)
    usual = total if recording.backend is Backend.TPU else in_results
    cases = [(part, added, placed, usual), (part, waiting, placed, usual), (part, added, all_copies, usual)]
    if delayed is not None:
        cases.append((whole._replace(bytes=size * 2 * delayed[0] // (delayed[1] * parts)), added, placed, usual))
    if recording.backend is Backend.TPU:
        cases.append((part, added, placed, in_results))
    changes = []
    for examples, gradients, further, sums in cases:
        after = concatenate_lifetimes(examples, before, gradients.take(gradients.end > gradients.start))
        changes.append(combine(replace_lifetimes(recording, rows, after), sums, further))
    return changes


def _before_loop(sizes: I64, end: int) -> Change:
    """Return the change by allocations from the beginning of the program to the end of the loop."""
    return new_memory(np.full(len(sizes), -1), np.full(len(sizes), end), sizes)


INTERLEAVED = "  # the examples of each part lie apart: each device splits its own"
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
    return jax.tree.map(lambda a: a / {parts}, total)

value, grads = mean_gradients(params, batch)  # instead of jax.value_and_grad(loss)(params, batch)"""


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for a training step whose inputs have a batch dimension that splits on each device.

    Programs that accumulate gradients already get none.
    """
    passes, graph, step = program_passes(recording), dataflow_graph(recording), training_step(recording)
    if passes is None or graph is None or step is None or accumulates_gradients(graph, step):
        return
    given = np.flatnonzero(passes.is_argument & (roles(recording) == Role.INPUT))
    rows, inputs = used_inputs(graph, step, given)
    batch = find_batch(recording, graph, step, rows)
    if batch is None:
        return
    convolves = _convolves(passes)
    values = batch_values(recording, graph, step, passes, inputs, batch.size)
    share = DELAYED_SHARE if convolves and recording.backend is Backend.GPU else None
    copied = recording.allocations.size[batch.rows] if batch.devices > 1 else NO_ROWS
    further = [
        np.concatenate([cast_bytes(recording, graph, step, Role.PARAMETER), copied]),
        np.concatenate([cast_bytes(recording, graph, step, Role.INPUT), rearranged_bytes(recording, batch)]),
    ]
    least = MIN_CONVOLVED if convolves and recording.backend is Backend.TPU else 1
    found: tuple[int, Saving] | None = None
    for parts in PARTS if len(values.scaled) else ():
        if batch.size % parts or batch.size // parts < least:
            break
        saved = _saving(recording, BatchParts(values, further, share, batch.size, parts))
        if saved is not None and (found is None or saved.room > found[1].room):
            found = parts, saved
        if found is None or fits_after(recording, found[1].room) is not False:
            break
    if found is not None:
        yield _advice(recording, batch, values, *found)


def rearranged_bytes(recording: Recording, batch: Batch) -> I64:
    """Return the sizes of inputs that a TPU has to copy before it can split them.

    Where examples lie next to each other in memory, as TPUs store pictures with few channels, a loop cannot take a part
    of them: XLA first moves the parts apart.
    """
    if recording.backend is not Backend.TPU:
        return NO_ROWS
    table = recording.allocations
    innermost = f"{{{batch.dimension},"
    along = [row for row in batch.rows.tolist() if innermost in table.shape[row]]
    return table.size[along].astype(np.int64)


def _convolves(passes: ProgramPasses) -> bool:
    """Return whether most products of the forward pass are convolutions."""
    counts = [
        np.count_nonzero(passes.does(kind) & passes.within(Pass.FORWARD))
        for kind in ("conv_general_dilated", "dot_general")
    ]
    return bool(counts[0] > counts[1])


def _advice(recording: Recording, batch: Batch, values: BatchValues, parts: int, saved: Saving) -> Advice:
    table, scaled, (number, fraction) = recording.allocations, values.scaled, PARTS[parts]
    size, total = int(table.size[scaled].sum()), int(table.size[values.trained].sum())
    on_device = f", {batch.size // parts} on each device" if batch.devices > 1 else ""
    part_of = f", {batch.size} on each device" if batch.devices > 1 else ""
    return Advice(
        kind=AdviceKind.MICROBATCHING,
        title=f"Use {number} microbatches of {batch.whole // parts}{on_device}",
        sentence=f"{counted(len(scaled), 'tensor')} of the forward and backward passes "
        f"{agree(len(scaled), 'scales', 'scale')} with the batch of {batch.whole}{part_of}. Computing "
        f"{fraction} of the batch at a time {saved.effect}; this includes {bytes_text(total)} to accumulate "
        "gradients. The loss must be a mean over examples. More parts save more.",
        change=CODE.format(split=_split(batch, parts), parts=parts, reason=INTERLEAVED if batch.devices > 1 else ""),
        rows=sort_by_size(recording, scaled),
        bytes=size,
        saving=saved,
        work=Work(nbytes=float((MOVED_BY_PART * (parts - 1) + MOVED) * total), further=parts - 1),
    )


def _split(batch: Batch, parts: int) -> str:
    """Return the code that gives each input a first dimension of the parts."""
    before, after = (f"-1, {parts}", 1) if batch.devices > 1 else (f"{parts}, -1", 0)
    at = batch.dimension
    shape = f"a.reshape({f'*a.shape[:{at}], ' if at else ''}{before}, *a.shape[{at + 1}:])"
    return f"lambda a: {shape}" if at + after == 0 else f"lambda a: jnp.moveaxis({shape}, {at + after}, 0)"
