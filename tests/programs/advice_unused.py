"""Programs with arguments that nothing reads, and a knob that removes them.

JAX drops arguments that its own expression does not use, unless `keep_unused` is set. It keeps those of loops,
branches and custom derivatives whose use the compiler removes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Case, Tree, advised
from programs.sharding import replicated, shapes, split_batch

WIDTH = 2048
TARGETS = ("v5e", "h100")


def _layers(n: int, dtype: Any = jnp.float32) -> Tree:
    return {f"layer_{i}": jnp.zeros((WIDTH, WIDTH), dtype) for i in range(n)}


def _forward(params: Tree, x: Any) -> Any:
    for w in params.values():
        x = jax.nn.gelu(x @ w)
    return x


def _case(devices: list[Any], function: Any, *trees: Any, unused: int | None = None, **jitted: Any) -> Case:
    """Return a case whose last argument is a batch; without argument number `unused` where it is given."""
    one, data = replicated(devices[:1]), split_batch(devices[:1])
    given = [shapes(tree, one) for tree in trees] + [data((4096, WIDTH), jnp.float32)]
    roles = ["parameter"] * len(trees) + ["input"]
    kept = [i for i in range(len(given)) if i != unused]
    return Case(
        jax.jit(function, keep_unused=True, **jitted), tuple(given[i] for i in kept), tuple(roles[i] for i in kept)
    )


@advised(*TARGETS, unused={"remove": True})
def unused_teacher(devices: list[Any], remove: bool = False) -> Case:
    """Weights of a teacher that are passed along, with keep_unused."""

    def step(params: Tree, teacher: Tree, x: Any) -> Any:
        return jax.value_and_grad(lambda p: jnp.mean(_forward(p, x) ** 2))(params)

    if remove:
        return _case(devices, lambda params, x: step(params, {}, x), partial(_layers, 4))
    return _case(devices, step, partial(_layers, 4), partial(_layers, 6))


@advised(*TARGETS, unused={"remove": True})
def unused_head(devices: list[Any], remove: bool = False) -> Case:
    """Features of a model whose decoder is in the same tree."""

    def features(params: Tree, x: Any) -> Any:
        return _forward(params["encoder"], x)

    def initial() -> Tree:
        return {"encoder": _layers(4)} | ({} if remove else {"decoder": _layers(4), "head": jnp.zeros((WIDTH, 32000))})

    return _case(devices, features, initial)


@advised(*TARGETS, unused={"remove": True})
def unused_optimizer(devices: list[Any], remove: bool = False) -> Case:
    """Evaluation of a train state, whose optimizer state nothing reads."""

    def evaluate(state: Tree, x: Any) -> Any:
        return jnp.mean(_forward(state["params"], x) ** 2)

    def initial() -> Tree:
        return {"params": _layers(4, jnp.bfloat16)} | ({} if remove else {"mu": _layers(4), "nu": _layers(4)})

    return _case(devices, evaluate, initial)


@advised(*TARGETS, unused={"remove": True})
def unused_in_loop(devices: list[Any], remove: bool = False) -> Case:
    """A loop that carries weights which no iteration reads."""

    def solve(params: Tree, other: Tree, x: Any) -> Any:
        def body(carry: Any) -> Any:
            i, x, other = carry
            return i + 1, _forward(params, x), other

        return jax.lax.while_loop(lambda carry: carry[0] < 4, body, (0, x, other))[1]

    if remove:
        return _case(devices, lambda params, x: solve(params, {}, x), partial(_layers, 4))
    return _case(devices, solve, partial(_layers, 4), partial(_layers, 6))


@advised(*TARGETS, unused={"remove": True})
def unused_in_branch(devices: list[Any], remove: bool = False) -> Case:
    """A branch that is never taken, as its condition is a constant of the compiler."""

    def predict(params: Tree, average: Tree, x: Any) -> Any:
        use_average = jnp.zeros((), jnp.int32).at[()].add(0) > 0
        chosen = average and jax.tree.map(lambda a, b: jnp.where(use_average, a, b), average, params)
        return _forward(chosen or params, x)

    if remove:
        return _case(devices, lambda params, x: predict(params, {}, x), partial(_layers, 4))
    return _case(devices, predict, partial(_layers, 4), partial(_layers, 4))


@advised(*TARGETS, unused={"remove": True})
def unused_in_derivative(devices: list[Any], remove: bool = False) -> Case:
    """A custom derivative that is given weights it does not read."""

    @jax.custom_vjp
    def layer(w: Any, spare: Any, x: Any) -> Any:
        return jax.nn.gelu(x @ w)

    def forward(w: Any, spare: Any, x: Any) -> Any:
        return layer(w, spare, x), (w, x)

    def backward(kept: Any, grad: Any) -> Any:
        w, x = kept
        _, pull = jax.vjp(lambda w, x: jax.nn.gelu(x @ w), w, x)
        dw, dx = pull(grad)
        return dw, None, dx

    layer.defvjp(forward, backward)

    def step(params: Tree, spare: Tree, x: Any) -> Any:
        def loss(params: Tree) -> Any:
            y = x
            for name, w in params.items():
                y = layer(w, spare.get(name), y)
            return jnp.mean(y**2)

        return jax.value_and_grad(loss)(params)

    if remove:
        return _case(devices, lambda params, x: step(params, {}, x), partial(_layers, 4))
    return _case(devices, step, partial(_layers, 4), partial(_layers, 4))


@advised(*TARGETS, unused={"remove": True})
def unused_cache(devices: list[Any], remove: bool = False) -> Case:
    """Prefill that is given the cache, which it overwrites as a whole."""

    def prefill(params: Tree, cache: Tree, x: Any) -> Any:
        return {name: x @ w for name, w in params.items()}

    if remove:
        return _case(devices, lambda params, x: prefill(params, {}, x), partial(_layers, 3, jnp.bfloat16))

    def caches() -> Tree:
        return {f"layer_{i}": jnp.zeros((4096, WIDTH)) for i in range(3)}

    return _case(devices, prefill, partial(_layers, 3, jnp.bfloat16), caches)
