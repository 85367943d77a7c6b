"""Parts that training steps share: gradients of microbatches, updates, recomputation, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Tree

Loss = Callable[[Tree, Tree], Any]  # of the parameters and the batch
TRAINED = {"params": "parameter", "opt": "optimizer state"}  # the roles of a training state


def mean_gradients(
    loss: Loss, params: Tree, batch: Tree, microbatches: int = 1, *, has_aux: bool = False, interleaved: bool = True
) -> tuple[Any, Tree]:
    """Return the loss of a batch and its gradients, computed in parts that are summed up by a scan.

    Interleaved parts copy the batch, but each device splits its own part of it.
    """
    compute = jax.value_and_grad(loss, has_aux=has_aux)
    if microbatches == 1:
        return compute(params, batch)
    if interleaved:
        parts = jax.tree.map(lambda a: a.reshape(-1, microbatches, *a.shape[1:]).swapaxes(0, 1), batch)
    else:
        parts = jax.tree.map(lambda a: a.reshape(microbatches, -1, *a.shape[1:]), batch)

    def add(total: Tree, part: Tree) -> tuple[Tree, Any]:
        value, grads = compute(params, part)
        return jax.tree.map(jnp.add, total, grads), value

    total, values = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), parts)
    return jax.tree.map(lambda a: a.mean(0), values), jax.tree.map(lambda g: g / microbatches, total)


def training_state(params: Tree, optimizer: optax.GradientTransformation) -> Tree:
    """Return parameters with the state of their optimizer, as `training_step` takes them."""
    return {"params": params, "opt": optimizer.init(params)}


def training_step(loss: Loss, optimizer: optax.GradientTransformation, microbatches: int = 1) -> Callable[..., Any]:
    """Return a function from a training state and a batch to the next state and the loss."""

    def step(state: Tree, batch: Tree) -> tuple[Tree, Any]:
        value, grads = mean_gradients(loss, state["params"], batch, microbatches)
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    return step


def jit_step(step: Callable[..., Any], donate: bool) -> Any:
    """Return the compiled step; donated, it writes the next state over the first argument."""
    return jax.jit(step, donate_argnums=(0,) if donate else ())


def rematerialized(layer: Callable[..., Any], remat: str) -> Callable[..., Any]:
    """Return a layer whose intermediate results are kept for the backward pass ("none"), or recomputed."""
    if remat == "none":
        return layer
    policy = {"layer": None, "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}[remat]
    return jax.checkpoint(layer, policy=policy)


def cast(tree: Tree, dtype: str) -> Tree:
    """Return a tree with its floating-point arrays in another dtype."""
    return jax.tree.map(lambda a: a.astype(dtype) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)
