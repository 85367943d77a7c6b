"""Storing in bf16 instead of f32: its changes, weights at inference, and code for an optimizer's state."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, cpu_note, results_text, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import SMALL_SHARE, argument_parts, arguments
from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import with_updated
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.program_graph import program_graph
from tb_memplugin.analysis.replay.what_if import Change, always, combine, resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.dataflow import ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text

WIDE, NARROW = "f32", {"bf16", "f16"}
CAST = """\
def narrow(tree):
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)

"""
WIDENED = f"the saving is smaller, because the compiler widens bf16 to {WIDE} in separate memory"


def wide_rows(recording: Recording) -> Mask:
    return recording.allocations.dtype.isin({WIDE})


def halve(recording: Recording, rows: I64) -> Change:
    return resize_rows(recording, rows, recording.allocations.size[rows] // 2)


def with_results(recording: Recording, rows: I64) -> I64:
    """Return these arguments, the results that return them updated, and the values in place from one to the other."""
    graph, row, both = dataflow_graph(recording), row_of_value(recording), with_updated(recording, rows)
    assert graph is not None
    table, derived = recording.allocations, graph.values.derivations
    source, target = row[derived.source], row[derived.target]
    between = np.isin(source, rows) & (target >= 0) & (table.region[source] == table.region[target])
    between &= table.size[source] == table.size[target]
    return np.union1d(both, target[between]).astype(np.int64)


def casts_of(recording: Recording, passes: ProgramPasses, rows: I64) -> I64:
    """Return the copies of these rows in 16 bits that the compiler makes."""
    row, derived = row_of_value(recording), passes.values.derivations
    elements = passes.values.elements
    same = (elements[derived.source] == elements[derived.target]) & np.isin(row[derived.source], rows)
    found = row[derived.target[same]]
    found = np.unique(found[found >= 0]).astype(np.int64)
    casts: I64 = found[recording.allocations.dtype.isin(NARROW)[found] & ~passes.is_argument[found]]
    return casts


def from_kept_products(passes: ProgramPasses, rows: I64) -> Mask:
    """Mark the rows that are computed from a product among the rows, and are as large as it."""
    values, products = passes.values, passes.values.products
    multiplied = products.position[products.kind == ProductKind.PRODUCT]
    is_product = np.isin(passes.made[rows], multiplied)
    kept = passes.value[rows[is_product]]
    reads = np.isin(values.used_value, kept)
    read = values.elements[values.used_value[reads]] * 2**31 + values.use[reads]
    computed = values.elements[passes.value[rows]] * 2**31 + passes.made[rows]
    return np.isin(computed, read) & ~is_product


def advise_inference(recording: Recording, passes: ProgramPasses, rows: I64) -> Iterator[Advice]:
    """Yield advice on the weights and caches of a program without training."""
    if not len(rows):
        return
    stored = with_results(recording, rows)
    casts = casts_of(recording, passes, stored)
    cast = resize_rows(recording, casts, np.zeros_like(casts))
    wide = wide_rows(recording)
    inputs = np.flatnonzero(wide & passes.is_argument & (roles(recording) == Role.INPUT))
    with_inputs = combine(halve(recording, np.union1d(stored, inputs)), cast)
    # Values computed from narrow inputs may be narrow, too.
    computed = combine(halve(recording, np.flatnonzero(wide)), cast)
    stored_only = halve(recording, stored)
    saved = saving(recording, with_inputs, stored_only, computed)
    if recording.backend is Backend.GPU:
        # Where inputs stay in f32, a product may read a copy of the array that is widened again; on TPU, it is fused.
        largest = int(recording.allocations.size[rows].max())
        widened = always(recording, largest)
        saved = saving(recording, with_inputs, stored_only, computed, combine(stored_only, widened)) or saved
    if saved is None:
        return
    size = int(recording.allocations.size[rows].sum())
    table = recording.allocations
    names = [
        argument.name
        for argument in arguments(recording)
        if SMALL_SHARE * int(table.size[np.intersect1d(argument.rows, rows)].sum()) >= size
    ]
    names_text, count = ", ".join(names), len(names)
    yield Advice(
        kind=AdviceKind.DTYPE,
        title=f"Store {names_text} in bf16",
        sentence=f"{names_text} {agree(count, 'takes', 'take')} {bytes_text(size)} in {WIDE}"
        f"{results_text(recording, rows, stored)}, and this program does "
        f"not train {agree(count, 'it', 'them')}. Storing {agree(count, 'it', 'them')} in bf16 {saved.effect}."
        f"{cpu_note(recording, WIDENED)}",
        change=f"{CAST}{names_text} = {', '.join(f'narrow({name})' for name in names)}  # once, before the call; cast "
        "the inputs, too, or they widen the products",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
    )


# Fields of Optax's states that contain an array for each parameter. JAX writes them as attributes, `[0].mu['w']`, and
# Flax NNX as keys, `[0]['mu']['w']`.
FIELDS = (
    *("mu", "nu", "trace", "sum_of_squares", "v_row", "v_col", "v"),
    *("mini_batch_gradient", "acc_grads", "e_g", "e_x"),
)
KEYS = tuple(name for name in FIELDS if len(name) > 1)  # `v` is also a projection of attention
FIELD = re.compile(rf"\.(?P<field>{'|'.join(FIELDS)})(?![\w])|(?:\[\d+\]|opt_state'\])\['(?P<key>{'|'.join(KEYS)})'\]")
TOLERATED = "First moments tolerate bf16 well."
TEST = "Second moments are sums of squares: test them on a short run, or quantize them."
ADAM = "optimizer = optax.adamw(learning_rate, mu_dtype=jnp.bfloat16)  # optax.adam has mu_dtype, too"
LION = "optimizer = optax.lion(learning_rate, mu_dtype=jnp.bfloat16)"
MOMENTUM = "optimizer = optax.sgd(learning_rate, momentum=momentum, accumulator_dtype=jnp.bfloat16)"
NARROW_CODE = """\
def narrow(tree, dtype=jnp.bfloat16):  # leaves counters as they are
    return jax.tree.map(lambda x: x.astype(dtype) if x.ndim and jnp.issubdtype(x.dtype, jnp.floating) else x, tree)
"""
WRAPPED = (
    NARROW_CODE
    + """
def stored_in_bf16(optimizer):  # updates are computed in f32
    def update(gradients, state, params=None):
        updates, state = optimizer.update(gradients, narrow(state, jnp.float32), params)
        return updates, narrow(state)
    return optax.GradientTransformation(lambda params: narrow(optimizer.init(params)), update)

optimizer = stored_in_bf16(optimizer)"""
)


class OptimizerCode(NamedTuple):
    """The part of an optimizer's state to store in bf16, and the code for it."""

    rows: I64
    what: str
    them: str
    code: str
    caution: str


def optimizer_code(recording: Recording, state: I64) -> OptimizerCode:
    """Return the code for these rows of optimizer state, by the fields of Optax's states in their paths."""
    state = _with_other_leaves(recording, state)
    paths = [recording.allocations.op_name[row] for row in state.tolist()]
    found = [match["field"] or match["key"] if (match := FIELD.search(path)) else "" for path in paths]
    field, fields = np.array(found, dtype=object), {*found} - {""}
    if fields == {"mu", "nu"}:
        return OptimizerCode(state[field == "mu"], "the first moments", "them", ADAM, TOLERATED)
    if fields == {"mu"}:
        return OptimizerCode(state[field == "mu"], "the first moments", "them", LION, TOLERATED)
    if fields == {"trace"}:
        return OptimizerCode(state[field == "trace"], "the momentum", "it", MOMENTUM, TOLERATED)
    code = WRAPPED if fields else _plain(recording, state)
    return OptimizerCode(state, "optimizer state", "it", code, f"{TOLERATED} {TEST}")


def _with_other_leaves(recording: Recording, state: I64) -> I64:
    """Return these rows, and the other f32 arguments in the same fields of Optax's states: `[0].trace` is one field."""
    table, graph = recording.allocations, dataflow_graph(recording)
    assert graph is not None
    given = row_of_value(recording)[graph.values.argument >= 0]
    given = np.unique(given[given >= 0]).astype(np.int64)
    given = given[table.dtype.isin({"f32"})[given]]
    names = {row: match.string[: match.end()] for row in given.tolist() if (match := FIELD.search(table.op_name[row]))}
    kept, known = {name: [0, 0] for name in names.values()}, {*state.tolist()}
    for row, name in names.items():
        kept[name][int(row in known)] += int(table.size[row])
    others = [row for row, name in names.items() if kept[name][1] > kept[name][0]]
    return np.union1d(state, np.array(others, dtype=np.int64))


def _plain(recording: Recording, state: I64) -> str:
    """Return code for state that no library owns."""
    names = [part.name for part in argument_parts(recording) if np.isin(part.rows, state).any()]
    lines = "\n".join(f"{name} = narrow({name})" for name in names)
    return f"{NARROW_CODE}\n{lines}  # where it is created, and after each update"


def or_another_order(recording: Recording, saved: Saving) -> Saving:
    """Return a saving with an upper bound for another order of the operations, as the compiler schedules them anew.

    If an order saves more than the change itself, it is advice of its own, and not an effect of the change.
    """
    if (program := program_graph(recording)) is None:
        return replace(saved, at_most=min(saved.at_most, peak(recording).bytes))
    by_order = program.graph.peak(program.graph.own_order) - program.graph.peak(program.lower_order)
    return replace(saved, at_most=min(saved.at_most + min(by_order, saved.expected), peak(recording).bytes))
