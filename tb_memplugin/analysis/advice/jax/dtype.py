"""Advice to use bf16 instead of f32: for optimizer state, for mixed precision, and for weights at inference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, cpu_note, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import arguments
from tb_memplugin.analysis.advice.support.passes import ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, place_in_outputs, resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

WIDE = "f32"
WIDENED = f"the saving is smaller, because the compiler widens bf16 to {WIDE} in separate memory"


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield advice on optimizer state, and on computation (training) or on weights and caches (inference)."""
    passes = program_passes(recording)
    if passes is None:
        return
    trains = bool(passes.within(Pass.BACKWARD).any())
    role, wide = roles(recording), _wide_rows(recording)
    state = np.flatnonzero(wide & passes.is_argument & (role == Role.OPTIMIZER_STATE))
    if len(state):
        yield from _advise_optimizer_state(recording, state)
    if trains:
        yield from _advise_mixed_precision(recording, passes, wide)
    else:
        yield from _advise_inference(
            recording, np.flatnonzero(wide & passes.is_argument & np.isin(role, (Role.PARAMETER, Role.STATE)))
        )


def _wide_rows(recording: Recording) -> Mask:
    return recording.allocations.dtype.isin({WIDE})


def _halve(recording: Recording, rows: I64) -> Change:
    return resize_rows(recording, rows, recording.allocations.size[rows] // 2)


def _with_results(recording: Recording, rows: I64) -> I64:
    """Return these arguments and the results that return them updated."""
    found, row = input_output_pairs(recording), row_of_value(recording)
    back = row[found.value[np.isin(row[found.argument], rows)]]
    return np.union1d(rows, back[back >= 0]).astype(np.int64)


def _advise_optimizer_state(recording: Recording, state: I64) -> Iterator[Advice]:
    saved = saving(recording, _halve(recording, _with_results(recording, state)))
    if saved is None:
        return
    size = int(recording.allocations.size[state].sum())
    names = ", ".join(argument.name for argument in arguments(recording) if np.isin(argument.rows, state).any())
    yield Advice(
        kind=AdviceKind.DTYPE,
        title="Store optimizer state in bf16",
        sentence=f"{bytes_text(size)} of {names} are optimizer state in {WIDE}. Storing it in bf16 {saved.effect}. "
        "First moments tolerate bf16 well. Second moments are sums of squares: test them on a short run, or quantize "
        "them.",
        change="jax.tree.map(lambda m: m.astype(jnp.bfloat16), state)  # where state is created, and after each "
        "update; in Optax: optax.adamw(..., mu_dtype=jnp.bfloat16)",
        rows=sort_by_size(recording, state),
        bytes=size,
        saving=saved,
    )


def _advise_mixed_precision(recording: Recording, passes: ProgramPasses, wide: Mask) -> Iterator[Advice]:
    """Yield advice on mixed precision: weights stay in f32, and values computed from them are in bf16."""
    both = passes.within(Pass.FORWARD) | passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    made, role = passes.made, roles(recording)
    # Activations that a loop carries have no pass in their name.
    computed = (made >= 0) & both[made] | (role == Role.ACTIVATION)
    rows = np.flatnonzero(wide & computed & ~passes.is_argument)
    if not len(rows):
        return
    weights = np.flatnonzero(wide & passes.is_argument & np.isin(role, (Role.PARAMETER, Role.INPUT)))
    last = passes.last_use(both)[weights]
    casts = weights[last >= 0]
    copies = Change(passes.first_use(both)[casts], last[last >= 0] + 1, recording.allocations.size[casts] // 2)
    saved = saving(recording, combine(_halve(recording, rows), place_in_outputs(recording, copies)))
    if saved is None:
        return
    evidence = np.intersect1d(rows, live_rows(recording, peak(recording).position))
    charge = recording.allocations.charge
    kept = int(charge[evidence[role[evidence] == Role.ACTIVATION]].sum())
    kept_text = f", including {bytes_text(kept)} of activations kept for the backward pass" if kept else ""
    yield Advice(
        kind=AdviceKind.DTYPE,
        title="Compute in bf16",
        sentence=f"The forward and backward passes compute in {WIDE}: {counted(len(evidence), 'tensor')} at the "
        f"peak{kept_text}. Computing in bf16, with weights cast where they are used, {saved.effect}. Keep the stored "
        f"weights, the loss, softmax sums and normalization statistics in {WIDE}.{cpu_note(recording, WIDENED)}",
        change="params = jax.tree.map(lambda w: w.astype(jnp.bfloat16), params)  # and the inputs, before applying "
        "the model; in Flax: nn.Dense(..., dtype=jnp.bfloat16, param_dtype=jnp.float32)",
        rows=sort_by_size(recording, evidence),
        bytes=int(recording.allocations.size[evidence].sum()),
        saving=saved,
    )


def _advise_inference(recording: Recording, rows: I64) -> Iterator[Advice]:
    """Yield advice on the weights and caches of a program without training."""
    if not len(rows):
        return
    saved = saving(recording, _halve(recording, _with_results(recording, rows)))
    if saved is None:
        return
    size = int(recording.allocations.size[rows].sum())
    names = [argument.name for argument in arguments(recording) if np.isin(argument.rows, rows).any()]
    names_text, count = ", ".join(names), len(names)
    yield Advice(
        kind=AdviceKind.DTYPE,
        title=f"Store {names_text} in bf16",
        sentence=f"{names_text} {agree(count, 'takes', 'take')} {bytes_text(size)} in {WIDE}, and this program does "
        f"not train {agree(count, 'it', 'them')}. Storing {agree(count, 'it', 'them')} in bf16 {saved.effect}."
        f"{cpu_note(recording, WIDENED)}",
        change="; ".join(f"{name} = jax.tree.map(lambda w: w.astype(jnp.bfloat16), {name})" for name in names)
        + "  # once, before the call",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
    )
