"""Numbers of 32 bits where 16 would do: the optimizer's state, what a training step computes with, served weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, cpu_note, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import arguments
from tb_memplugin.analysis.advice.support.passes import Bools, ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, place_in_outputs, resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

WIDE = "f32"
WIDENED = f"it is less: its compiler widens bf16 to {WIDE} to compute with it, in memory of its own"


def advise(recording: Recording) -> Iterator[Advice]:
    known = program_passes(recording)
    if known is None:
        return
    trains = bool(known.within(Pass.BACKWARD).any())
    role, wide = roles(recording), _wide_rows(recording)
    state = np.flatnonzero(wide & known.is_argument & (role == Role.OPTIMIZER_STATE))
    if len(state):
        yield from _advise_optimizer_state(recording, state)
    if trains:
        yield from _advise_mixed_precision(recording, known, wide)
    else:
        yield from _advise_inference(
            recording, np.flatnonzero(wide & known.is_argument & np.isin(role, (Role.PARAMETER, Role.STATE)))
        )


def _wide_rows(recording: Recording) -> Bools:
    strings = recording.allocations.dtype.strings
    wanted = np.array([strings[code] == WIDE for code in range(len(strings))] + [False])
    found: Bools = wanted[recording.allocations.dtype.codes]
    return found


def _halve(recording: Recording, rows: I64) -> Change:
    return resize_rows(recording, rows, recording.allocations.size[rows] // 2)


def _with_results(recording: Recording, rows: I64) -> I64:
    """These arguments, and what they come back as."""
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
        title="Optimizer state in bf16",
        sentence=f"{bytes_text(size)} of {names} are optimizer state in {WIDE}. In bf16 the peak is "
        f"{bytes_text(saved.bytes)} lower. First moments bear it well; for second moments, which are sums of squares, "
        "try it on a short run, or quantize them.",
        change="jax.tree.map(lambda m: m.astype(jnp.bfloat16), state)  # where it is made, and after each update; "
        "in Optax: optax.adamw(..., mu_dtype=jnp.bfloat16)",
        rows=sort_by_size(recording, state),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _advise_mixed_precision(recording: Recording, known: ProgramPasses, wide: Bools) -> Iterator[Advice]:
    """Mixed precision: weights stay as they are, and what is computed from them is narrow."""
    both = known.within(Pass.FORWARD) | known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)
    made, role = known.made, roles(recording)
    # What a loop carries of activations has no pass in its name.
    computed = (made >= 0) & both[made] | (role == Role.ACTIVATION)
    rows = np.flatnonzero(wide & computed & ~known.is_argument)
    if not len(rows):
        return
    weights = np.flatnonzero(wide & known.is_argument & np.isin(role, (Role.PARAMETER, Role.INPUT)))
    last = known.last_use(both)[weights]
    casts = weights[last >= 0]
    copies = Change(known.first_use(both)[casts], last[last >= 0] + 1, recording.allocations.size[casts] // 2)
    saved = saving(recording, combine(_halve(recording, rows), place_in_outputs(recording, copies)))
    if saved is None:
        return
    evidence = np.intersect1d(rows, live_rows(recording, peak(recording).position))
    charge = recording.allocations.charge
    kept = int(charge[evidence[role[evidence] == Role.ACTIVATION]].sum())
    among = f", among them {bytes_text(kept)} of activations kept for the backward pass" if kept else ""
    yield Advice(
        kind=AdviceKind.DTYPE,
        title="Compute in bf16",
        sentence=f"Forward and backward pass compute in {WIDE}: at the peak {len(evidence)} tensors{among}. "
        f"In bf16, and weights cast where they are used, the peak is {bytes_text(saved.bytes)} lower. Keep "
        f"weights, the loss, softmax sums and the statistics of norms in {WIDE}."
        f"{cpu_note(recording, WIDENED)}",
        change="params = jax.tree.map(lambda w: w.astype(jnp.bfloat16), params)  # and the inputs, where the model is "
        "applied; in Flax: nn.Dense(..., dtype=jnp.bfloat16, param_dtype=jnp.float32)",
        rows=sort_by_size(recording, evidence),
        bytes=int(recording.allocations.size[evidence].sum()),
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _advise_inference(recording: Recording, rows: I64) -> Iterator[Advice]:
    """Weights and caches of a program that trains nothing."""
    if not len(rows):
        return
    saved = saving(recording, _halve(recording, _with_results(recording, rows)))
    if saved is None:
        return
    size = int(recording.allocations.size[rows].sum())
    names = [argument.name for argument in arguments(recording) if np.isin(argument.rows, rows).any()]
    listed, one = ", ".join(names), len(names) == 1
    yield Advice(
        kind=AdviceKind.DTYPE,
        title=f"{listed} in bf16",
        sentence=f"{listed} {'holds' if one else 'hold'} {bytes_text(size)} in {WIDE}, and nothing here trains "
        f"{'it' if one else 'them'}. In bf16 the peak is "
        f"{bytes_text(saved.bytes)} lower.{cpu_note(recording, WIDENED)}",
        change="; ".join(f"{name} = jax.tree.map(lambda w: w.astype(jnp.bfloat16), {name})" for name in names)
        + "  # once, before it is passed",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
