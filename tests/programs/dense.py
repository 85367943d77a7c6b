"""Programs in plain JAX and Optax: multilayer perceptrons."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch


@program("v5e", "v6e", "h100", donation={"donate": True}, microbatching={"microbatches": 2})
def mlp_adam(devices: list[Any], donate: bool = False, microbatches: int = 1, batch: int = 8192) -> Case:
    """A multilayer perceptron with Adam, on one device."""
    width, layers = 2048, 6
    optimizer = optax.adam(1e-3)

    def initial() -> Tree:
        params = {f"layer_{i}": {"w": jnp.zeros((width, width)), "b": jnp.zeros(width)} for i in range(layers)}
        return {"params": params, "opt": optimizer.init(params)}

    def loss(params: Tree, x: Any, y: Any) -> Any:
        for i in range(layers):
            x = jax.nn.gelu(x @ params[f"layer_{i}"]["w"] + params[f"layer_{i}"]["b"])
        return jnp.mean((x - y) ** 2)

    def step(state: Tree, x: Any, y: Any) -> Any:
        if microbatches == 1:
            value, grads = jax.value_and_grad(loss)(state["params"], x, y)
        else:
            split = [a.reshape(microbatches, -1, *a.shape[1:]) for a in (x, y)]

            def add(total: Tree, part: Tree) -> Any:
                value, grads = jax.value_and_grad(loss)(state["params"], *part)
                return jax.tree.map(jnp.add, total, grads), value

            grads, values = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, state["params"]), tuple(split))
            grads, value = jax.tree.map(lambda g: g / microbatches, grads), values.mean()
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    one = replicated(devices[:1])
    data = split_batch(devices[:1])
    return Case(
        jax.jit(step, donate_argnums=(0,) if donate else ()),
        (shapes(initial, one), data((batch, width)), data((batch, width))),
        ({"params": "parameter", "opt": "optimizer state"}, "input", "input"),
    )
