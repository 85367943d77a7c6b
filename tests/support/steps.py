"""Small programs with known roles for every argument and buffer. Compiled for the CPU; nothing runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from support.aot import Shaped, array, hlo_proto

from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.hlo import read_hlo

BATCH, WIDTH, LAYERS, HIDDEN = 48, 64, 3, 80
Params = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A function, its arguments' shapes, and the numbers of the donated arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...] = ()


def params() -> Params:
    """Return an MLP's weights: two matrices and a bias for each layer, all of different shapes within a layer."""
    layer = {"up": array(WIDTH, HIDDEN), "bias": array(HIDDEN), "down": array(HIDDEN, WIDTH)}
    return {f"layer_{i}": layer for i in range(LAYERS)}


def layer(p: Params, x: Array) -> Array:
    y: Array = x + jnp.tanh(x @ p["up"] + p["bias"]) @ p["down"]
    return y


def loss(p: Params, x: Array, y: Array, remat: bool = False) -> Array:
    apply = jax.checkpoint(layer) if remat else layer
    for i in range(LAYERS):
        x = apply(p[f"layer_{i}"], x)
    return jnp.mean((x - y) ** 2)


def tree(f: Callable[..., Any], *trees: Any) -> Any:
    return jax.tree.map(f, *trees)


def momentum(remat: bool = False, told: bool = True) -> Callable[..., Any]:
    def step(p: Params, m: Params, x: Array, y: Array) -> Any:
        value, g = jax.value_and_grad(loss)(p, x, y, remat)
        m = tree(lambda m, g: 0.9 * m + g, m, g)
        p = tree(lambda p, m: p - 0.1 * m, p, m)
        return (p, m, value) if told else (p, m)

    return step


def adam(p: Params, m: Params, v: Params, count: Array, x: Array, y: Array) -> Any:
    value, g = jax.value_and_grad(loss)(p, x, y)
    count = count + 1
    m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = tree(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    t = count.astype(jnp.float32)
    p = tree(lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-8) + 0.01 * p), p, m, v)
    return p, m, v, count, value


def clipped(p: Params, m: Params, x: Array, y: Array) -> Any:
    value, g = jax.value_and_grad(loss)(p, x, y)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g)))
    g = tree(lambda g: g * jnp.minimum(1.0, 1.0 / norm), g)
    m = tree(lambda m, g: 0.9 * m + g, m, g)
    return tree(lambda p, m: p - 0.1 * m, p, m), m, value, norm


def scanned(remat: bool = False) -> Callable[..., Any]:
    """Scan over stacked layers: one argument contains the weights of all."""
    apply = jax.checkpoint(layer) if remat else layer

    def step(p: Params, m: Params, x: Array, y: Array) -> Any:
        def total(p: Params) -> Array:
            last, _ = lax.scan(lambda x, p: (apply(p, x), None), x, p)
            return jnp.mean((last - y) ** 2)

        value, g = jax.value_and_grad(total)(p)
        m = tree(lambda m, g: 0.9 * m + g, m, g)
        return tree(lambda p, m: p - 0.1 * m, p, m), m, value

    return step


def accumulated(p: Params, m: Params, xs: Array, ys: Array) -> Any:
    """Accumulate gradients over microbatches, in a loop of a forward and a backward pass."""

    def turn(total: Params, batch: tuple[Array, Array]) -> Any:
        value, g = jax.value_and_grad(loss)(p, *batch)
        return tree(jnp.add, total, g), value

    g, values = lax.scan(turn, tree(jnp.zeros_like, p), (xs, ys))
    m = tree(lambda m, g: 0.9 * m + g, m, g)
    return tree(lambda p, m: p - 0.1 * m, p, m), m, values.mean()


def many_steps(p: Params, m: Params, xs: Array, ys: Array) -> Any:
    """Loop over whole training steps: each iteration computes with the previous iteration's update."""

    def turn(state: tuple[Params, Params], batch: tuple[Array, Array]) -> Any:
        p, m, value = momentum()(*state, *batch)
        return (p, m), value

    (p, m), values = lax.scan(turn, (p, m), (xs, ys))
    return p, m, values


def mixed(p: Params, m: Params, x: Array, y: Array) -> Any:
    """Keep weights in float32 and compute in bfloat16."""

    def total(p: Params) -> Array:
        return loss(tree(lambda leaf: leaf.astype(jnp.bfloat16), p), x, y).astype(jnp.float32)

    value, g = jax.value_and_grad(total)(p)
    m = tree(lambda m, g: 0.9 * m + g, m, g)
    return tree(lambda p, m: p - 0.1 * m, p, m), m, value


def where_finite(p: Params, m: Params, x: Array, y: Array) -> Any:
    """Update only where the loss is finite: both branches pass through a conditional."""
    value, g = jax.value_and_grad(loss)(p, x, y)

    def update(p: Params, m: Params) -> Any:
        m = tree(lambda m, g: 0.9 * m + g, m, g)
        return tree(lambda p, m: p - 0.1 * m, p, m), m

    return *lax.cond(jnp.isfinite(value), update, lambda p, m: (p, m), p, m), value


def averaged(p: Params, average: Params, x: Array, y: Array) -> Any:
    """Use plain gradient descent, and a running mean of the weights that no computation reads."""
    value, g = jax.value_and_grad(loss)(p, x, y)
    p = tree(lambda p, g: p - 0.1 * g, p, g)
    return p, tree(lambda a, p: 0.99 * a + 0.01 * p, average, p), value


def low_rank(frozen: Params, p: Params, m: Params, x: Array, y: Array) -> Any:
    """Train two small factors next to a frozen weight, which is not returned."""

    def total(p: Params) -> Array:
        return jnp.mean((jnp.tanh(x @ frozen["up"] + x @ p["a"] @ p["b"]) @ frozen["down"] - y) ** 2)

    value, g = jax.value_and_grad(total)(p)
    m = tree(lambda m, g: 0.9 * m + g, m, g)
    return tree(lambda p, m: p - 0.1 * m, p, m), m, value


def normalized(p: Params, mean: Array, x: Array, y: Array) -> Any:
    """Keep a running mean of a result of the forward pass, which also computes with it."""

    def total(p: Params) -> Any:
        h = x @ p["up"]
        return jnp.mean((jnp.tanh(h - mean) @ p["down"] - y) ** 2), 0.9 * mean + 0.1 * h.mean(0)

    (value, mean), g = jax.value_and_grad(total, has_aux=True)(p)
    return tree(lambda p, g: p - 0.1 * g, p, g), mean, value


def decode(p: Params, cache: Params, x: Array, index: Array) -> Any:
    """Return one token through attention over a cache of keys and values, written at `index`."""
    for i in range(LAYERS):
        w = p[f"layer_{i}"]
        key = lax.dynamic_update_slice(cache[f"layer_{i}"]["key"], x @ w["k"], (index, 0))
        value = lax.dynamic_update_slice(cache[f"layer_{i}"]["value"], x @ w["v"], (index, 0))
        cache = cache | {f"layer_{i}": {"key": key, "value": value}}
        x = x + jax.nn.softmax((x @ w["q"]) @ key.T) @ value @ w["o"]
    return x, cache


def forward(p: Params, tokens: Array) -> Any:
    x = p["embedding"][tokens]
    for i in range(LAYERS):
        x = layer(p[f"layer_{i}"], x)
    return x


X, Y = array(BATCH, WIDTH), array(BATCH, WIDTH)
HALF: Any = Shaped((BATCH, WIDTH), jnp.bfloat16)
INTEGER: Any = Shaped((), jnp.int32)
TOKENS: Any = Shaped((BATCH,), jnp.int32)
STACKED = {"up": array(8, WIDTH, HIDDEN), "bias": array(8, HIDDEN), "down": array(8, HIDDEN, WIDTH)}
MICRO = array(4, BATCH, WIDTH)
SQUARE = {name: array(WIDTH, WIDTH) for name in "qkvo"}
PAIR = {"up": array(WIDTH, HIDDEN), "down": array(HIDDEN, WIDTH)}
FACTORS = {"a": array(WIDTH, 4), "b": array(4, HIDDEN)}
CACHE = {f"layer_{i}": {"key": array(128, WIDTH), "value": array(128, WIDTH)} for i in range(LAYERS)}
P = params()

STEPS: dict[str, Step] = {
    "momentum": Step(momentum(), (P, P, X, Y)),
    "momentum_donated": Step(momentum(), (P, P, X, Y), (0, 1)),
    "momentum_remat": Step(momentum(remat=True), (P, P, X, Y), (0, 1)),
    "momentum_untold": Step(momentum(told=False), (P, P, X, Y), (0, 1)),
    "adam": Step(adam, (P, P, P, INTEGER, X, Y)),
    "adam_donated": Step(adam, (P, P, P, INTEGER, X, Y), (0, 1, 2, 3)),
    "clipped": Step(clipped, (P, P, X, Y), (0, 1)),
    "scanned": Step(scanned(), (STACKED, STACKED, X, Y), (0, 1)),
    "scanned_remat": Step(scanned(remat=True), (STACKED, STACKED, X, Y), (0, 1)),
    "accumulated": Step(accumulated, (P, P, MICRO, MICRO), (0, 1)),
    "mixed": Step(mixed, (P, P, HALF, HALF), (0, 1)),
    "where_finite": Step(where_finite, (P, P, X, Y), (0, 1)),
    "averaged": Step(averaged, (P, P, X, Y), (0, 1)),
    "low_rank": Step(low_rank, (PAIR, FACTORS, FACTORS, X, Y), (1, 2)),
    "normalized": Step(normalized, (PAIR, array(HIDDEN), X, Y), (0, 1)),
    "many_steps": Step(many_steps, (P, P, MICRO, MICRO), (0, 1)),
    "gradients": Step(jax.value_and_grad(loss), (P, X, Y)),
    "decode": Step(decode, ({f"layer_{i}": SQUARE for i in range(LAYERS)}, CACHE, array(1, WIDTH), INTEGER), (1,)),
    "forward": Step(forward, (P | {"embedding": array(500, WIDTH)}, TOKENS)),
    "product": Step(lambda x, y: x @ y, (array(128, 96), array(96, 160))),
    "residual": Step(lambda x, w: x + jnp.tanh(x @ w), (X, array(WIDTH, WIDTH))),
}


@cache
def compiled(name: str) -> bytes:
    """Return a serialized HloProto."""
    step = STEPS[name]
    return hlo_proto(jax.jit(step.function, donate_argnums=step.donated).lower(*step.arguments).compile())


def without_names(data: bytes) -> bytes:
    """Return the same program without any name that people wrote."""
    proto = HloProto.FromString(data)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.metadata.Clear()
            instruction.name = b"i%d" % instruction.id
    return proto.SerializeToString()


def recording(name: str, *, named: bool = True) -> Recording:
    """Return the recording of the main memory."""
    data = compiled(name)
    return read_hlo(data if named else without_names(data), source=name)[0]
