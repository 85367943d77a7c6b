"""Half of the batch at a time: what is as large as the batch is half as large, and gradients are added up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.passes import Bools, ProgramPasses, program_passes
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, resize_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

WEIGHTS = (Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE)
DIMENSIONS = re.compile(r"\w+\[(\d[\d,]{0,200})\]")


def advise(recording: Recording) -> Iterator[Advice]:
    known = program_passes(recording)
    if known is None or not known.within(Pass.BACKWARD).any():
        return
    role, table = roles(recording), recording.allocations
    inputs = np.flatnonzero(known.is_argument & (role == Role.INPUT))
    if not len(inputs):
        return
    # The largest input: its first dimension is the batch's.
    batch = _dimensions(table.shape[int(sort_by_size(recording, inputs)[0])])
    if not batch or batch[0] < 2:
        return
    weights = np.flatnonzero(known.is_argument & (role == Role.PARAMETER))
    rows = _batch_rows(recording, known, batch, weights)
    if not len(rows):
        return
    added_up = Change(np.array([-1]), np.array([recording.length]), np.array([int(table.size[weights].sum())]))
    saved = saving(recording, combine(resize_rows(recording, rows, table.size[rows] // 2), added_up))
    if saved is None:
        return
    size = int(table.size[rows].sum())
    yield Advice(
        kind=AdviceKind.MICROBATCHING,
        title=f"Two microbatches of {batch[0] // 2}",
        sentence=f"{len(rows)} tensors of the forward and the backward pass are as large as the batch of {batch[0]}. "
        f"Half of it at a time, with the gradients of both halves added up in {bytes_text(int(added_up.bytes[0]))}, "
        f"the peak is {bytes_text(saved.bytes)} lower; with more parts, lower still.",
        change="jax.lax.scan(lambda total, part: (jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None), "
        "zeros, parts)",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _batch_rows(recording: Recording, known: ProgramPasses, batch: list[int], weights: I64) -> I64:
    """Activations, and rows of both passes with a dimension that is the batch, or the batch and what follows it in one.

    The gradient of a weight may have such a number by chance. In memory that a result will take it is known by the
    weight's shape, elsewhere by its role.
    """
    table, role = recording.allocations, roles(recording)
    sizes = {batch[0], batch[0] * batch[1]} if len(batch) > 1 else set(batch[:1])
    names = table.shape.strings
    fits = np.array([not sizes.isdisjoint(_dimensions(names[code])) for code in range(len(names))] + [False])
    both = known.within(Pass.FORWARD) | known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)
    made = (known.made >= 0) & both[known.made] & ~known.is_argument
    shape = known.values.shape[known.value]
    guest = recording.regions.kind[table.region] != RegionKind.TEMPORARY
    of_weights: Bools = np.where(guest, np.isin(shape, shape[weights]), np.isin(role, WEIGHTS))
    activation = (role == Role.ACTIVATION) & (known.values.elements[known.value] % max(sizes, default=1) == 0)
    return np.flatnonzero(made & (fits[table.shape.codes] | activation) & ~of_weights)


def _dimensions(shape: str) -> list[int]:
    found = DIMENSIONS.match(shape)
    return [int(number) for number in found[1].split(",") if number and len(number) < 16] if found else []
