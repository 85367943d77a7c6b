"""A training step of a loss and an optimizer, with the changes that advice suggests as knobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec
from programs.case import ADVISED, Case, CaseBuilder, Knobs, Tree
from programs.sharding import replicated, shapes, split_batch

CHANGES: dict[str, Knobs] = {
    "microbatching": {"microbatches": 2},
    "rematerialization": {"remat": "full"},
    "offload": {"offload": True},
    "donation": {"donate": True},
}


class Changes(NamedTuple):
    """Changes of the step itself that a builder's knobs ask for; `remat` concerns the model."""

    microbatches: int = 1
    donate: bool = True
    offload: bool = False
    accumulate: str = "scan"  # or "multisteps"


def training_step(*targets: str) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Add the decorated builder, which has the knobs of `Changes` and `remat`, to the programs to advise on."""

    def add(build: Callable[..., Case]) -> Callable[..., Case]:
        ADVISED[build.__name__] = CaseBuilder(build.__name__, build, targets, CHANGES)
        return build

    return add


def training_case(
    devices: list[Any],
    parameters: Callable[[], Tree],
    loss: Callable[..., Any],
    batch: dict[str, Any],  # name: shape and dtype
    changes: Changes,
    optimizer: Any = None,
    count: int = 1,
    sharding: Callable[[Any, Any], Any] | None = None,  # of a parameter: path and shape to PartitionSpec
) -> Case:
    """Build a step of `loss(params, batch)` over the first `count` devices, its batch split between them."""
    optimizer = optimizer or optax.adamw(1e-3)

    def initial() -> Tree:
        params = parameters()
        return {"params": params, "opt": optimizer.init(params)}

    one = replicated(devices[:count])
    split = split_batch(devices[:count])
    state = shapes(initial, _shardings(initial, one, sharding))
    given = {name: split(shape, dtype) for name, (shape, dtype) in batch.items()}
    if changes.offload:
        return _gradients_alone(loss, state["params"], given)
    placed = jax.tree.map(lambda a: a.sharding, state)

    def step(state: Tree, batch: Tree) -> Any:
        value, grads = gradients(loss, state["params"], batch, changes.microbatches)
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    function = jax.jit(
        step,
        donate_argnums=(0,) if changes.donate else (),
        out_shardings=(placed, one),
    )
    return Case(function, (state, given), ({"params": "parameter", "opt": "optimizer state"}, "input"))


def _gradients_alone(loss: Callable[..., Any], params: Tree, batch: dict[str, Any]) -> Case:
    """Build the larger of two programs. The smaller one updates: only while it runs is its state on the device."""
    function = jax.jit(jax.value_and_grad(loss), out_shardings=(None, jax.tree.map(lambda a: a.sharding, params)))
    return Case(function, (params, batch), ("parameter", "input"))


def _shardings(initial: Callable[[], Tree], one: NamedSharding, spec: Callable[[Any, Any], Any] | None) -> Any:
    if spec is None:
        return one
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: NamedSharding(one.mesh, spec(path, leaf) or PartitionSpec()), jax.eval_shape(initial)
    )


def gradients(loss: Callable[..., Any], params: Tree, batch: Tree, microbatches: int) -> Any:
    """Return the loss and its gradient; in several microbatches, their means."""
    if microbatches == 1:
        return jax.value_and_grad(loss)(params, batch)
    # Every k-th example, so that each device splits its own part of the batch.
    parts = jax.tree.map(lambda a: a.reshape(-1, microbatches, *a.shape[1:]).swapaxes(0, 1), batch)

    def add(total: Tree, part: Tree) -> Any:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, part)), None

    zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    total, _ = jax.lax.scan(add, zeros, parts)
    return jax.tree.map(lambda a: a / microbatches, total)


def checkpointed(function: Any, remat: str, wrap: Any = jax.checkpoint) -> Any:
    """Return the function wrapped as asked: "" not at all, "full", or "dots"."""
    if not remat:
        return function
    policies = jax.checkpoint_policies
    policy = {"full": None, "dots": policies.dots_saveable, "no_batch": policies.dots_with_no_batch_dims_saveable}[
        remat
    ]
    return wrap(function, policy=policy) if policy else wrap(function)
