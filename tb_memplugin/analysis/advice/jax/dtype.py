"""Advice to use bf16 instead of f32: for optimizer state, for mixed precision, and for weights at inference."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    cpu_note,
    results_text,
    safe_replay,
    saving,
    sort_by_size,
)
from tb_memplugin.analysis.advice.support.arguments import arguments
from tb_memplugin.analysis.advice.support.batch import score_elements
from tb_memplugin.analysis.advice.support.narrowing import (
    CAST,
    NARROW,
    WIDE,
    WIDENED,
    advise_inference,
    from_kept_products,
    halve,
    optimizer_code,
    or_another_order,
    wide_rows,
    with_results,
)
from tb_memplugin.analysis.advice.support.passes import PRODUCTS, ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, originals
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, new_memory, place_in_outputs, resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64, Mask, dimensions
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

# A twentieth of the peak, because other numerics are a large change. On the stored programs, a tenth loses 6 of 61
# pieces, and a fortieth adds 1.
MIN_NUMERICS_SHARE = 20
CONVOLUTION = "conv_general_dilated"
# Of 24 programs that were compiled for v4 to v6e with the change, those with convolutions saved up to 1.33 times what
# halving saves, as copies between layouts vanish; those with large embeddings 1.47 times, as a sum in bf16 is in place.
MORE_ON_TPU = 1.5
# Beside scores of attention, what norms read may be kept once more, in bf16 beside f32: of the programs that were
# compiled for a TPU with the change, an encoder of speech saved 0.55 of the least that the replays give.
LESS_BESIDE_SCORES = 0.5
SUMS_OF_ROWS = ("scatter-add", "scatter_add")


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield advice on optimizer state, and on computation (training) or on weights and caches (inference)."""
    passes = program_passes(recording)
    if passes is None:
        return
    trains = bool(passes.within(Pass.BACKWARD).any())
    role, wide = roles(recording), wide_rows(recording)
    state = np.flatnonzero(wide & passes.is_argument & (role == Role.OPTIMIZER_STATE))
    if len(state):
        yield from _advise_optimizer_state(recording, state)
    if trains:
        yield from _advise_mixed_precision(recording, passes, wide)
    else:
        yield from advise_inference(
            recording, passes, np.flatnonzero(wide & passes.is_argument & np.isin(role, (Role.PARAMETER, Role.STATE)))
        )


def _advise_optimizer_state(recording: Recording, state: I64) -> Iterator[Advice]:
    """Yield a piece on the part of the state that the optimizer can store in bf16 by itself, else on all of it."""
    found = optimizer_code(recording, state)
    both = with_results(recording, found.rows)
    gradients = np.flatnonzero(wide_rows(recording) & (roles(recording) == Role.GRADIENT))
    # The compiler may compute gradients in the dtype of the state that they enter, and where it updates a table in
    # another layout and copies the result, it may do without the copy, as it did for the tables of `clicks`.
    copied = np.setdiff1d(originals(recording, both), found.rows)
    in_place = resize_rows(recording, copied, np.zeros_like(copied))
    bounds = halve(recording, np.union1d(both, gradients)), combine(halve(recording, both), in_place)
    saved = saving(recording, halve(recording, both), *bounds)
    saved = saved and or_another_order(recording, saved)
    if saved is None:
        return
    size = int(recording.allocations.size[found.rows].sum())
    names = ", ".join(argument.name for argument in arguments(recording) if np.isin(argument.rows, found.rows).any())
    yield Advice(
        kind=AdviceKind.DTYPE,
        title=f"Store {found.what} in bf16",
        sentence=f"{bytes_text(size)} of {names} are {found.what} in {WIDE}"
        f"{results_text(recording, found.rows, both)}. Storing {found.them} in bf16 {saved.effect}. {found.caution}",
        change=found.code,
        rows=sort_by_size(recording, found.rows),
        bytes=size,
        saving=saved,
    )


def _advise_mixed_precision(recording: Recording, passes: ProgramPasses, wide: Mask) -> Iterator[Advice]:
    """Yield advice on mixed precision: weights stay in f32, and values computed from them are in bf16."""
    role = roles(recording)
    if _is_mixed_already(recording, wide, passes.is_argument):
        return
    found = _f32_values(recording, passes, wide)
    if not len(found.computed):
        return
    halved, activations = (halve(recording, rows) for rows in (found.computed, found.activations))
    if recording.backend is Backend.TPU:
        # The weights of attention may then be kept in bf16 beside its scores in f32, from which they were computed
        # again, and scores of classes beside their softmax in f32: of four language models, one kept both of these.
        size, early = recording.allocations.size, halve(recording, found.early)
        weights, logits = (resize_rows(recording, rows, size[rows] * 3 // 2) for rows in (found.scores, found.logits))
        kept_twice = combine(early, weights), combine(early, logits)
        saved = saving(recording, halve(recording, found.narrow), *kept_twice, halved)
        if saved is not None:
            most = MORE_ON_TPU if found.has_sums or passes.does(CONVOLUTION).any() else 1
            least = LESS_BESIDE_SCORES if len(found.scores) else 1
            saved = replace(saved, at_least=int(least * saved.at_least), at_most=int(most * saved.at_most))
            saved = safe_replay(recording, saved)
    elif recording.backend is Backend.GPU:
        # Casts keep the compiler from recomputing an activation function from the product before it: both results are
        # then kept in bf16, and take as much as one in f32. A function of several operations, such as GELU, ends in a
        # multiplication, and keeps one more value.
        again = found.activations[from_kept_products(passes, found.activations)]
        made = passes.made[again]
        longer = again[(made >= 0) & passes.does("mul")[made]]
        sure = np.setdiff1d(found.activations, np.union1d(again, found.scores))
        expected = halve(recording, np.setdiff1d(found.computed, longer))
        bounds = (halve(recording, sure), halved, activations)
        saved = saving(recording, *(combine(one, found.casts) for one in (expected, *bounds)))
    else:
        saved = saving(recording, combine(halved, found.casts))
    saved = saved and or_another_order(recording, saved)
    if saved is None or MIN_NUMERICS_SHARE * saved.expected < peak(recording).bytes:
        return
    rows = found.computed
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
        change=f"{CAST}params, inputs = narrow(params), narrow(inputs)  # in the function whose gradient is computed; "
        "in Flax: nn.Dense(..., dtype=jnp.bfloat16)",
        rows=sort_by_size(recording, evidence),
        bytes=int(recording.allocations.size[evidence].sum()),
        saving=saved,
    )


class _WideValues(NamedTuple):
    """Values in f32 that mixed precision would store in bf16."""

    computed: I64  # by the forward and backward passes
    activations: I64  # kept for the backward pass
    narrow: I64  # on a TPU: of those computed, without scores of attention, the loss, and gradients that products write
    early: I64  # of these, the activations and the gradients that are sums of rows
    scores: I64  # activations that are scores of attention
    logits: I64  # scores of classes: the forward pass's last product, if it is larger than what it multiplies
    has_sums: bool  # of rows
    casts: Change  # copies of the weights in bf16


def _f32_values(recording: Recording, passes: ProgramPasses, wide: Mask) -> _WideValues:
    forward, backward = passes.within(Pass.FORWARD), passes.within(Pass.BACKWARD)
    both = forward | backward | passes.within(Pass.REMATERIALIZED)
    made, role, size = passes.made, roles(recording), recording.allocations.size
    is_activation = wide & (role == Role.ACTIVATION) & ~passes.is_argument
    # Activations that a loop carries have no pass in their name.
    computed = wide & ((made >= 0) & both[made] | (role == Role.ACTIVATION)) & ~passes.is_argument
    weights = np.flatnonzero(wide & passes.is_argument & np.isin(role, (Role.PARAMETER, Role.INPUT)))
    last = passes.last_use(both)[weights]
    casts = new_memory(passes.first_use(both)[weights[last >= 0]], last[last >= 0] + 1, size[weights[last >= 0]] // 2)
    products = np.flatnonzero(passes.does(*PRODUCTS) & forward & passes.is_named)
    # A loop is at its end, so what it returns may be made after its own products.
    loss = (made >= products.max(initial=-1)) & forward[made] & ~passes.op.isin({"while"})[made]
    summed = (role == Role.GRADIENT) & np.isin(made, np.flatnonzero(passes.does(*SUMS_OF_ROWS) & backward))
    scores = _scores(recording, passes)
    narrow = computed & ~loss & ~scores & (~np.isin(role, (Role.GRADIENT, Role.OUTPUT)) | summed)
    return _WideValues(
        np.flatnonzero(computed),
        np.flatnonzero(is_activation),
        np.flatnonzero(narrow),
        np.flatnonzero(narrow & (is_activation | summed)),
        np.flatnonzero(is_activation & scores),
        np.flatnonzero(computed & forward[made] & _is_widened(passes, int(products.max(initial=-1)))),
        bool(summed.any()),
        place_in_outputs(recording, casts),
    )


def _is_widened(passes: ProgramPasses, position: int) -> Mask:
    """Mark the rows that a product at a position writes, and that have more elements than each of its sides."""
    values, products = passes.values, passes.values.products
    sides = products.value[products.position[products.product] == position]
    widest = int(values.elements[sides].max(initial=0))
    found: Mask = (passes.made == position) & (position >= 0) & (widest > 0)
    return found & (values.elements[passes.value] > widest)


def _scores(recording: Recording, passes: ProgramPasses) -> Mask:
    """Mark the rows that are as large as scores of attention, or as a stack of them that a scan collects."""
    graph, step = dataflow_graph(recording), training_step(recording)
    if graph is None or step is None:
        return np.zeros(len(passes.value), dtype=bool)
    inputs = np.flatnonzero(passes.is_argument & (roles(recording) == Role.INPUT))
    scores, shape = score_elements(graph, step, passes, inputs), recording.allocations.shape
    first = np.array([*((dimensions(text) or [1])[0] for text in shape.strings), 1])[shape.codes]
    elements = np.where(passes.value >= 0, passes.values.elements[passes.value], 0)
    return np.isin(elements, scores) | np.isin(elements // np.maximum(first, 1), scores)


def _is_mixed_already(recording: Recording, wide: Mask, is_argument: Mask) -> bool:
    """Return whether many parameters or activations are in 16 bits.

    The compiler for TPUs stores values of an f32 program in bf16 by itself: of 26 compiled programs, up to 31 % of the
    bytes of activations, and at least 53 % once they compute in bf16 and keep softmax and norms in f32.
    """
    role, size = roles(recording), recording.allocations.size
    narrow = recording.allocations.dtype.isin(NARROW)
    of_wide = 0.75 if recording.backend is Backend.TPU else 0.25
    found = (is_argument & (role == Role.PARAMETER), ~is_argument & (role == Role.ACTIVATION))
    return any(int(size[of & narrow].sum()) > of_wide * int(size[of & wide].sum()) for of in found)
