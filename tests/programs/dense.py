"""Programs in plain JAX and Optax: multilayer perceptrons."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, cast, mean_gradients, rematerialized


def perceptron(width: int, layers: int) -> Tree:
    return {f"layer_{i}": {"w": jnp.zeros((width, width)), "b": jnp.zeros(width)} for i in range(layers)}


def perceptron_loss(params: Tree, batch: Tree, remat: str = "none", compute: str = "float32") -> Any:
    def layer(p: Tree, x: Any) -> Any:
        return jax.nn.gelu(x @ p["w"] + p["b"])

    x, y = batch
    for p in cast(params, compute).values():
        x = rematerialized(layer, remat)(p, x.astype(compute))
    return jnp.mean((x.astype(jnp.float32) - y) ** 2)


@program(
    "v5e", "v6e", "h100",
    donation={"donate": True}, microbatching={"microbatches": 2},
    rematerialization={"remat": "layer"}, Store_the_first_moments={"mu_dtype": "bfloat16"},
    Compute_in_bf16={"compute": "bfloat16"}, offload={"gradients_alone": True},
)  # fmt: skip
def mlp_adam(
    devices: list[Any], donate: bool = False, microbatches: int = 1, batch: int = 8192,
    remat: str = "none", compute: str = "float32", mu_dtype: str | None = None, gradients_alone: bool = False,
) -> Case:  # fmt: skip
    """A multilayer perceptron with Adam, on one device."""
    width, layers = 2048, 6
    optimizer = optax.adam(1e-3, mu_dtype=mu_dtype)

    def initial() -> Tree:
        params = perceptron(width, layers)
        return {"params": params, "opt": optimizer.init(params)}

    def step(state: Tree, x: Any, y: Any) -> Any:
        def loss(params: Tree, batch: Tree) -> Any:
            return perceptron_loss(params, batch, remat, compute)

        value, grads = mean_gradients(loss, state["params"], (x, y), microbatches, interleaved=False)
        if gradients_alone:
            return value, grads
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    one = replicated(devices[:1])
    data = split_batch(devices[:1])
    return Case(
        jax.jit(step, donate_argnums=(0,) if donate else ()),
        (shapes(initial, one), data((batch, width)), data((batch, width))),
        (TRAINED, "input", "input"),
    )


@program("v4", "v5p", donation={"donate": True}, microbatching={"microbatches": 2})
def mlp_momentum(devices: list[Any], donate: bool = False, microbatches: int = 1, batch: int = 16384) -> Case:
    """A perceptron trained by hand-written SGD with momentum, data-parallel: the state is on every device."""
    width, layers = 3072, 4

    def step(params: Tree, momentum: Tree, x: Any, y: Any) -> Any:
        value, grads = mean_gradients(perceptron_loss, params, (x, y), microbatches)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum, value

    params = shapes(lambda: perceptron(width, layers), replicated(devices))
    data = split_batch(devices)
    return Case(
        jax.jit(step, donate_argnums=(0, 1) if donate else ()),
        (params, params, data((batch, width)), data((batch, width))),
        ("parameter", "optimizer state", "input", "input"),
    )
