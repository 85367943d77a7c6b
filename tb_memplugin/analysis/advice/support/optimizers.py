"""Code that stores an optimizer's state in bf16, by the optimizer that the state belongs to."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.advice.support.arguments import argument_parts
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording

# Fields of Optax's states that contain an array for each parameter. JAX writes them as attributes, `[0].mu['w']`, and
# Flax NNX as keys, `[0]['mu']['w']`.
FIELDS = (
    "mu",
    "nu",
    "trace",
    "sum_of_squares",
    "v_row",
    "v_col",
    "v",
    "mini_batch_gradient",
    "acc_grads",
    "e_g",
    "e_x",
)
KEYS = tuple(name for name in FIELDS if len(name) > 1)  # `v` is also a projection of attention
FIELD = re.compile(rf"\.(?P<field>{'|'.join(FIELDS)})(?![\w])|(?:\[\d+\]|opt_state'\])\['(?P<key>{'|'.join(KEYS)})'\]")
TOLERATED = "First moments tolerate bf16 well."
TEST = "Second moments are sums of squares: test them on a short run, or quantize them."
ADAM = "optimizer = optax.adamw(learning_rate, mu_dtype=jnp.bfloat16)  # optax.adam has mu_dtype, too"
LION = "optimizer = optax.lion(learning_rate, mu_dtype=jnp.bfloat16)"
MOMENTUM = "optimizer = optax.sgd(learning_rate, momentum=momentum, accumulator_dtype=jnp.bfloat16)"
NARROW = """\
def narrow(tree, dtype=jnp.bfloat16):  # leaves counters as they are
    return jax.tree.map(lambda x: x.astype(dtype) if x.ndim and jnp.issubdtype(x.dtype, jnp.floating) else x, tree)
"""
WRAPPED = (
    NARROW
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
    field = _fields(recording, state)
    fields = set(field.tolist()) - {""}
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
    if graph is None:
        return state
    given = row_of_value(recording)[graph.values.argument >= 0]
    given = np.unique(given[given >= 0]).astype(np.int64)
    given = given[table.dtype.isin({"f32"})[given]]
    names = {row: match.string[: match.end()] for row in given.tolist() if (match := FIELD.search(table.scope[row]))}
    kept, known = {name: [0, 0] for name in names.values()}, {*state.tolist()}
    for row, name in names.items():
        kept[name][int(row in known)] += int(table.size[row])
    others = [row for row, name in names.items() if kept[name][1] > kept[name][0]]
    return np.union1d(state, np.array(others, dtype=np.int64))


def _fields(recording: Recording, rows: I64) -> npt.NDArray[np.object_]:
    scope = recording.allocations.scope
    found = [FIELD.search(scope[row] or "") for row in rows.tolist()]
    return np.array([match["field"] or match["key"] if match else "" for match in found], dtype=object)


def _plain(recording: Recording, state: I64) -> str:
    """Return code for state that no library owns."""
    names = [part.name for part in argument_parts(recording) if np.isin(part.rows, state).any()]
    lines = "\n".join(f"{name} = narrow({name})" for name in names)
    return f"{NARROW}\n{lines}  # where it is created, and after each update"
