"""A step of two layers for the CPU's compiler."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def step(devices: list[Any], batch: int = 8, width: int = 256, remat: str = "none") -> Any:
    """Return a training step with its batch split over the devices."""
    mesh = Mesh(np.array(devices), ("data",))
    if remat not in ("none", "full"):
        raise ValueError(f"remat={remat}: none or full")

    def layer(x: Any, weight: Any) -> Any:
        return jnp.tanh(x @ weight)

    def loss(weights: Any, x: Any) -> Any:
        for weight in weights:
            x = jax.checkpoint(layer)(x, weight) if remat == "full" else layer(x, weight)
        return (x**2).mean()

    def train(weights: Any, x: Any) -> Any:
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x))

    weights = [jax.ShapeDtypeStruct((width, width), jnp.float32, sharding=NamedSharding(mesh, P()))] * 4
    x = jax.ShapeDtypeStruct((batch * len(devices), width), jnp.float32, sharding=NamedSharding(mesh, P("data")))
    return jax.jit(train, donate_argnums=0), (weights, x)
