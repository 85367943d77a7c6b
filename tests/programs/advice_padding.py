"""Programs whose arguments have a dimension a little larger than a TPU's tiles, and a knob that makes it smaller.

The knob `merged` stores them in another shape, which advice does not suggest: it costs memory.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Case, advised, program
from programs.sharding import replicated, shapes

TARGETS = ("v5e", "v6e")
SMALLER = {"padding": {"smaller": True}}


def _case(devices: list[Any], function: Any, params: Any, *given: tuple[tuple[int, ...], Any], **jitted: Any) -> Case:
    one = replicated(devices[:1])
    arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=one) for shape, dtype in given]
    roles = ("parameter", *("input" for _ in given))
    return Case(jax.jit(function, **jitted), (shapes(params, one), *arguments), roles)


@advised(*TARGETS, **SMALLER)
def padded_features(devices: list[Any], smaller: bool = False) -> Case:
    """A table with 129 columns."""
    columns = 128 if smaller else 129

    def predict(params: Any, x: Any) -> Any:
        return jax.nn.relu(x @ params["first"]) @ params["last"]

    return _case(
        devices, predict, lambda: {"first": jnp.zeros((columns, 256)), "last": jnp.zeros((256, 8))},
        ((262144, columns), jnp.float32),
    )  # fmt: skip


@advised(*TARGETS, **SMALLER)
def padded_state(devices: list[Any], smaller: bool = False, donate: bool = False) -> Case:
    """State of a simulation with nine numbers for each cell."""
    cells, size = 2**22, 8 if smaller else 9

    def step(params: Any, state: Any) -> Any:
        return jnp.tanh(state @ params["w"])

    return _case(
        devices, step, lambda: {"w": jnp.zeros((size, size))}, ((cells, size), jnp.float32),
        donate_argnums=(1,) if donate else (),
    )  # fmt: skip


@advised(*TARGETS, **SMALLER)
def padded_channels(devices: list[Any], smaller: bool = False) -> Case:
    """Satellite images with nine bands, first."""
    bands = 8 if smaller else 9

    def embed(params: Any, images: Any) -> Any:
        made = jax.lax.conv_general_dilated(images, params["w"], (8, 8), "VALID")
        return jax.nn.relu(made).mean((2, 3))

    return _case(
        devices, embed, lambda: {"w": jnp.zeros((64, bands, 8, 8))}, ((64, bands, 256, 256), jnp.float32)
    )  # fmt: skip


@advised(*TARGETS, **SMALLER)
def padded_matrices(devices: list[Any], smaller: bool = False) -> Case:
    """A matrix of 33 by 33 for each item, summed."""
    n, size = 65536, 32 if smaller else 33

    def apply(params: Any, matrices: Any) -> Any:
        return jnp.einsum("nij,j->n", matrices, params["w"])

    return _case(devices, apply, lambda: {"w": jnp.zeros(size)}, ((n, size, size), jnp.float32))


@advised(*TARGETS, **SMALLER)
def padded_sequence(devices: list[Any], smaller: bool = False) -> Case:
    """Sequences of 257 tokens, of which each has 1024 numbers."""
    length = 256 if smaller else 257

    def encode(params: Any, x: Any) -> Any:
        return jax.nn.relu(x @ params["w"]).mean(1)

    return _case(
        devices, encode, lambda: {"w": jnp.zeros((1024, 256), jnp.bfloat16)}, ((256, length, 1024), jnp.bfloat16)
    )


@advised(*TARGETS, padding={"merged": True})
def padded_maps(devices: list[Any], merged: bool = False) -> Case:
    """Many small matrices, one for each item; stored as rows, they are copied and the program needs more."""
    n, size = 65536, 20

    def apply(params: Any, x: Any) -> Any:
        return jnp.einsum("nij,nj->ni", params["maps"].reshape(n, size, size), x)

    def initial() -> Any:
        return {"maps": jnp.zeros((n, size * size) if merged else (n, size, size))}

    return _case(devices, apply, initial, ((n, size), jnp.float32))


COLUMNS = {"gather": {"columns": True}}


def _rows_of(x: Any, indices: Any, columns: bool) -> Any:
    if columns:
        return jnp.stack([x[:, i][indices] for i in range(x.shape[1])], -1)
    return x[indices]


@program(*TARGETS, **COLUMNS)
def neighbors_of_particles(devices: list[Any], columns: bool = False) -> Case:
    """Forces between particles in a plane, each with a list of its neighbors."""
    n, k = 100_000, 64

    def simulate(state: Any, neighbors: Any) -> Any:
        def force(r: Any) -> Any:
            apart = _rows_of(r, neighbors, columns) - r[:, None, :]
            return jnp.sum(apart / (jnp.sum(apart * apart, -1, keepdims=True) + 1e-3) ** 3, 1)

        def move(state: Any, _: Any) -> Any:
            r, v = state
            v = v + 0.01 * force(r)
            return (r + 0.01 * v, v), None

        return jax.lax.scan(move, state, None, length=10)[0]

    one = replicated(devices[:1])
    pair = jax.ShapeDtypeStruct((n, 2), jnp.float32, sharding=one)
    lists = jax.ShapeDtypeStruct((n, k), jnp.int32, sharding=one)
    return Case(jax.jit(simulate, donate_argnums=0), ((pair, pair), lists), ("state", "input"))


@advised(*TARGETS, **COLUMNS)
def edges_of_a_mesh(devices: list[Any], columns: bool = False) -> Case:
    """Lengths of a mesh's edges, from the three coordinates of their ends, and their gradient."""
    nodes, edges = 400_000, 3_000_000

    def loss(positions: Any, ends: Any) -> Any:
        apart = _rows_of(positions, ends[0], columns) - _rows_of(positions, ends[1], columns)
        return jnp.sum((jnp.linalg.norm(apart, axis=-1) - 1.0) ** 2)

    one = replicated(devices[:1])
    positions = jax.ShapeDtypeStruct((nodes, 3), jnp.float32, sharding=one)
    ends = jax.ShapeDtypeStruct((2, edges), jnp.int32, sharding=one)
    return Case(jax.jit(jax.grad(loss)), (positions, ends), ("state", "input"))


@advised(*TARGETS, **COLUMNS)
def messages_of_a_graph(devices: list[Any], columns: bool = False) -> Case:
    """Messages along the edges of a graph whose nodes have four features."""
    nodes, edges = 200_000, 2_000_000

    def update(params: Any, features: Any, senders: Any, receivers: Any) -> Any:
        sent = jnp.tanh(_rows_of(features, senders, columns) @ params["w"])
        if columns:
            return jnp.stack([jax.ops.segment_sum(sent[:, i], receivers, nodes) for i in range(4)], -1)
        return jax.ops.segment_sum(sent, receivers, nodes)

    return _case(
        devices, update, lambda: {"w": jnp.zeros((4, 4))}, ((nodes, 4), jnp.float32), ((edges,), jnp.int32),
        ((edges,), jnp.int32),
    )  # fmt: skip
