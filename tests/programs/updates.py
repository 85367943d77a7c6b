"""Steps that update in unusual ways: not at all, every few steps, many times, or two models."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.dense import perceptron, perceptron_loss
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, jit_step, mean_gradients, training_state, training_step
from programs.transformer import Sizes, token_loss, transformer


@program("v5e", "v6e", rematerialization={"remat": "layer"}, microbatching={"microbatches": 2})
def gradients_only(devices: list[Any], remat: str = "none", microbatches: int = 1, batch: int = 8) -> Case:
    """Gradients of a transformer, returned for another program to update with."""
    sizes = Sizes(layers=3, batch=batch)

    def gradients(params: Tree, tokens: Any) -> Any:
        return mean_gradients(lambda p, t: token_loss(p, t, sizes.heads, remat), params, tokens, microbatches)

    return Case(
        jax.jit(gradients),
        (
            shapes(lambda: transformer(sizes), replicated(devices[:1])),
            split_batch(devices[:1])(sizes.tokens, jnp.int32),
        ),
        ("parameter", "input"),
    )


@program("v4", "v5e", donation={"donate": True}, rematerialization={"remat": "layer"})
def accumulated(devices: list[Any], donate: bool = False, remat: str = "none", batch: int = 4096) -> Case:
    """Optax's MultiSteps: gradients are summed in the optimizer's state, and applied at each fourth step."""
    optimizer = optax.MultiSteps(optax.adamw(1e-3), every_k_schedule=4).gradient_transformation()

    def loss(params: Tree, batch: Tree) -> Any:
        return perceptron_loss(params, batch, remat)

    data = split_batch(devices[:1])
    return Case(
        jit_step(training_step(loss, optimizer), donate),
        (
            shapes(lambda: training_state(perceptron(2048, 6), optimizer), replicated(devices[:1])),
            (data((batch, 2048)), data((batch, 2048))),
        ),
        (TRAINED, "input"),
    )


@program("v5p", "v6e", donation={"donate": True})
def many_steps(devices: list[Any], donate: bool = False, steps: int = 8, batch: int = 4096) -> Case:
    """Eight steps in one program: a loop over batches that are all on the device."""
    optimizer, width = optax.adam(1e-3), 2048

    def train(state: Tree, inputs: Any, targets: Any) -> Any:
        one = training_step(perceptron_loss, optimizer)
        return jax.lax.fori_loop(0, steps, lambda i, state: one(state, (inputs[i], targets[i]))[0], state)

    one = replicated(devices[:1])
    data = shapes(lambda: jnp.zeros((steps, batch, width)), one)
    return Case(
        jit_step(train, donate),
        (shapes(lambda: training_state(perceptron(width, 4), optimizer), one), data, data),
        (TRAINED, "input", "input"),
    )


@program("v5e", "v4", donation={"donate": True})
def adversarial(devices: list[Any], donate: bool = False, batch: int = 8192) -> Case:
    """A generator and a discriminator with an optimizer each, updated one after the other."""
    optimizer, width = optax.adam(2e-4, b1=0.5), 2048

    def apply(params: Tree, x: Any) -> Any:
        for p in params.values():
            x = jax.nn.leaky_relu(x @ p["w"] + p["b"])
        return x

    def update(one: Tree, grads: Tree) -> Tree:
        updates, opt = optimizer.update(grads, one["opt"])
        return {"params": optax.apply_updates(one["params"], updates), "opt": opt}

    def train_step(state: Tree, images: Any, noise: Any) -> Any:
        def judge(params: Tree, x: Any) -> Any:
            return apply(params, x).mean(axis=-1)

        def discriminator_loss(params: Tree) -> Any:
            fake = jax.lax.stop_gradient(apply(state["generator"]["params"], noise))
            return jnp.mean(jax.nn.softplus(-judge(params, images)) + jax.nn.softplus(judge(params, fake)))

        def generator_loss(params: Tree, judges: Tree) -> Any:
            return jnp.mean(jax.nn.softplus(-judge(judges, apply(params, noise))))

        judges = update(state["discriminator"], jax.grad(discriminator_loss)(state["discriminator"]["params"]))
        grads = jax.grad(generator_loss)(state["generator"]["params"], judges["params"])
        return {"generator": update(state["generator"], grads), "discriminator": judges}

    def initial() -> Tree:
        return {name: training_state(perceptron(width, 3), optimizer) for name in ("generator", "discriminator")}

    data = split_batch(devices[:1])
    return Case(
        jit_step(train_step, donate),
        (shapes(initial, replicated(devices[:1])), data((batch, width)), data((batch, width))),
        ({"generator": TRAINED, "discriminator": TRAINED}, "input", "input"),
    )
