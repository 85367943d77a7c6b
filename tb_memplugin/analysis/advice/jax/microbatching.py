"""Advice to split the batch in two: tensors that scale with the batch are halved, and gradients are accumulated."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.passes import ProgramPasses, program_passes
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, resize_rows
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

WEIGHTS = (Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE)
DIMENSIONS = re.compile(r"\w+\[(\d[\d,]{0,200})\]")


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for a training step whose inputs have a batch dimension of at least 2."""
    passes = program_passes(recording)
    if passes is None or not passes.within(Pass.BACKWARD).any():
        return
    role, table = roles(recording), recording.allocations
    inputs = np.flatnonzero(passes.is_argument & (role == Role.INPUT))
    if not len(inputs):
        return
    # The first dimension of the largest input is the batch.
    batch = _dimensions(table.shape[int(sort_by_size(recording, inputs)[0])])
    if not batch or batch[0] < 2:
        return
    weights = np.flatnonzero(passes.is_argument & (role == Role.PARAMETER))
    rows = _batch_rows(recording, passes, batch, weights)
    if not len(rows):
        return
    added_up = Change(np.array([-1]), np.array([recording.length]), np.array([int(table.size[weights].sum())]))
    saved = saving(recording, combine(resize_rows(recording, rows, table.size[rows] // 2), added_up))
    if saved is None:
        return
    size = int(table.size[rows].sum())
    yield Advice(
        kind=AdviceKind.MICROBATCHING,
        title=f"Use two microbatches of {batch[0] // 2}",
        sentence=f"{counted(len(rows), 'tensor')} of the forward and backward passes "
        f"{agree(len(rows), 'scales', 'scale')} with the batch of {batch[0]}. Computing half of the batch at a time "
        f"{saved.effect}; this includes {bytes_text(int(added_up.bytes[0]))} to accumulate gradients. More parts save "
        "more.",
        change="jax.lax.scan(lambda total, part: (jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None), "
        "zeros, parts)",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
    )


def _batch_rows(recording: Recording, passes: ProgramPasses, batch: list[int], weights: I64) -> I64:
    """Return the rows that scale with the batch: activations, and rows of both passes that have the batch dimension.

    The batch dimension may be merged with the one that follows it. A weight's gradient may have such a dimension by
    chance; it is recognized by the weight's shape in memory reserved for a result, and by its role elsewhere.
    """
    table, role = recording.allocations, roles(recording)
    sizes = {batch[0], batch[0] * batch[1]} if len(batch) > 1 else set(batch[:1])
    fits = table.shape.where(lambda shape: not sizes.isdisjoint(_dimensions(shape)))
    both = passes.within(Pass.FORWARD) | passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    made = (passes.made >= 0) & both[passes.made] & ~passes.is_argument
    shape = passes.values.shape[passes.value]
    guest = recording.regions.kind[table.region] != RegionKind.TEMPORARY
    of_weights: Mask = np.where(guest, np.isin(shape, shape[weights]), np.isin(role, WEIGHTS))
    activation = (role == Role.ACTIVATION) & (passes.values.elements[passes.value] % max(sizes, default=1) == 0)
    return np.flatnonzero(made & (fits | activation) & ~of_weights)


def _dimensions(shape: str) -> list[int]:
    found = DIMENSIONS.match(shape)
    return [int(number) for number in found[1].split(",") if number and len(number) < 16] if found else []
