"""Steps that need much less memory if weight gradients are computed early."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec
from programs.case import ADVISED, Case, CaseBuilder, Tree
from programs.sharding import grid, shapes, split_batch
from programs.training import training_state, training_step

OPTION = "enable_latency_hiding_scheduler"


@jax.custom_vjp
def in_order(tree: Tree) -> Tree:
    """Return the tree; in the backward pass, all of its gradients are computed before any of them is used."""
    return tree


in_order.defvjp(lambda tree: (tree, None), lambda _, gradients: (jax.lax.optimization_barrier(gradients),))


def checkpointed_layers(
    devices: list[Any], layers: int = 16, width: int = 1024, batch: int = 65536, latency_hiding: bool = True,
    ordered: bool = False,
) -> Case:  # fmt: skip
    """Fully sharded layers in a Python loop, all recomputed: communication fills the whole backward pass."""
    mesh, optimizer = grid(devices, 1), optax.sgd(0.1, momentum=0.9)
    rows, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    @jax.checkpoint
    def layer(p: Tree, x: Any) -> Any:
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"]

    def loss(params: list[Tree], x: Any) -> Any:
        for p in params:
            x = jax.lax.with_sharding_constraint(layer(*(in_order((p, x)) if ordered else (p, x))), rows)
        return jnp.mean(x**2)

    def initial() -> Tree:
        one = {"up": jnp.zeros((width, 4 * width)), "down": jnp.zeros((4 * width, width))}
        return training_state([one] * layers, optimizer)

    state = shapes(initial, jax.tree.map(lambda a: rows if a.ndim else whole, jax.eval_shape(initial)))
    places = jax.tree.map(lambda a: a.sharding, state)
    platform = "tpu" if devices[0].platform == "tpu" else "gpu"
    function = jax.jit(
        training_step(loss, optimizer), donate_argnums=0, out_shardings=(places, None),
        compiler_options=None if latency_hiding else {f"xla_{platform}_{OPTION}": False},
    )  # fmt: skip
    roles = {"params": "parameter", "opt": "optimizer state"}
    return Case(function, (state, split_batch(devices)((batch, width))), (roles, "input"))


CHANGES = {"schedule": {"latency_hiding": False}}
ADVISED["checkpointed_layers"] = CaseBuilder("checkpointed_layers", checkpointed_layers, ("v5e", "h100"), CHANGES)
