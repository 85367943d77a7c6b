"""Watch the memory of a training loop with Flax and optax."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from tb_memplugin import capture


def main(logdir: str, steps: int = 20) -> None:
    model = nnx.Sequential(nnx.Linear(64, 256, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(256, 1, rngs=nnx.Rngs(1)))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def train_step(model: nnx.Module, optimizer: nnx.Optimizer[Any], batch: jax.Array) -> jax.Array:
        def loss(model: nnx.Module) -> jax.Array:
            return jnp.mean((model(batch) - batch.sum(axis=1, keepdims=True)) ** 2)

        value: jax.Array
        value, gradients = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradients)
        return value

    with capture.watch(logdir) as watched:
        for number in range(steps):
            watched.step(number)
            train_step(model, optimizer, jax.random.normal(jax.random.key(number), (32, 64)))


if __name__ == "__main__":
    main(sys.argv[1])
