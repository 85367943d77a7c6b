"""A recommender: large embedding tables, a small network."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.dense import perceptron
from programs.sharding import grid, sharded, sharded_by_name
from programs.training import TRAINED, jit_step, training_state, training_step


@program("v4", "v5e", "h100", donation={"donate": True}, microbatching={"microbatches": 2})
def recommender(devices: list[Any], donate: bool = False, microbatches: int = 1, batch: int = 65536) -> Case:
    """Click prediction from categories, whose tables are split by rows and updated with Adagrad."""
    tables, rows, features, mesh = 8, 1_000_000, 64, grid(devices, 1)
    optimizer = optax.adagrad(0.01)

    def initial() -> Tree:
        embeddings = {f"table_{i}": {"rows": jnp.zeros((rows, features))} for i in range(tables)}
        return training_state({"embeddings": embeddings, "mlp": perceptron(tables * features, 3)}, optimizer)

    def loss(params: Tree, batch: Tree) -> Any:
        found = [t["rows"][batch["ids"][:, i]] for i, t in enumerate(params["embeddings"].values())]
        x = jnp.concatenate(found, axis=-1)
        for p in params["mlp"].values():
            x = jax.nn.relu(x @ p["w"] + p["b"])
        return jnp.mean(optax.sigmoid_binary_cross_entropy(x.mean(axis=-1), batch["clicked"]))

    arguments = {
        "ids": sharded(mesh, (batch, tables), jnp.int32, "data"),
        "clicked": sharded(mesh, (batch,), jnp.float32, "data"),
    }
    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (sharded_by_name(initial, mesh, {"rows": ("data", None)}), arguments),
        (TRAINED, "input"),
    )
