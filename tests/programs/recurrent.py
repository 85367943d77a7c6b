"""Recurrent networks: a scan over time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, jit_step, rematerialized, training_state, training_step
from programs.transformer import cross_entropy


@program(
    "v5e", "v5p", donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"}
)
def lstm(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none", batch: int = 256
) -> Case:
    """Two LSTM layers over 256 characters; each step of time keeps its gates for the backward pass."""
    width, length, vocabulary, optimizer = 1024, 256, 512, optax.rmsprop(1e-3)

    def initial() -> Tree:
        layers = [{"w": jnp.zeros((2 * width, 4 * width)), "b": jnp.zeros(4 * width)} for _ in range(2)]
        params = {"embed": jnp.zeros((vocabulary, width)), "lstm": layers, "head": jnp.zeros((width, vocabulary))}
        return training_state(params, optimizer)

    def layer(p: Tree, xs: Any) -> Any:
        def cell(carry: Tree, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h], axis=-1) @ p["w"] + p["b"], 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros(xs.shape[1:])
        return jax.lax.scan(rematerialized(cell, remat), (start, start), xs)[1]

    def loss(params: Tree, text: Any) -> Any:
        xs = params["embed"][text[:, :-1].T]
        for p in params["lstm"]:
            xs = layer(p, xs)
        return cross_entropy(xs @ params["head"], text[:, 1:].T)

    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (shapes(initial, replicated(devices[:1])), split_batch(devices[:1])((batch, length + 1), jnp.int32)),
        (TRAINED, "input"),
    )
