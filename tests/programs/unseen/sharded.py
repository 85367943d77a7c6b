"""Steps whose state is sharded: fully, without constraints on activations, or the optimizer's alone."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from jax.sharding import NamedSharding, PartitionSpec
from programs.case import Case, Tree, advised
from programs.sharding import fully_sharded, grid, replicated, shapes, sharded, sharded_by_name
from programs.unseen.sequences import attention_shapes, encoder_layer, softmax_loss
from programs.unseen.step import weights


@advised("v5e", "v6e", "h100", Split_the_batch={"constrained": True})
def unconstrained_decoder(devices: list[Any], constrained: bool = False, batch: int = 64, length: int = 512) -> Case:
    """A decoder whose weights are split over the devices that split the batch, as NanoDO does it."""
    vocabulary, width, mesh, optimizer = 32768, 1024, grid(devices, 1), optax.adamw(1e-3)

    def initial() -> Tree:
        params = {
            "embed": jnp.zeros((vocabulary, width)),
            "position": jnp.zeros((length, width)),
            "layers": [weights(**attention_shapes(width, 4 * width)) for _ in range(3)],
        }
        return {"params": params, "opt": optimizer.init(params)}

    def keep(x: Any) -> Any:
        split = NamedSharding(mesh, PartitionSpec("data"))
        return jax.lax.with_sharding_constraint(x, split) if constrained else x

    def loss(params: Tree, tokens: Any) -> Any:
        x = keep(params["embed"][tokens[:, :-1]] + params["position"])
        for p in params["layers"]:
            x = encoder_layer(p, x, 16, causal=True)
        return softmax_loss(keep(x @ params["embed"].T), tokens[:, 1:])

    def train_step(state: Tree, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(state["params"], tokens)
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    columns = (None, "data")  # of the embedding, and of the products that return to its width
    state = sharded_by_name(initial, mesh, {"embed": columns, "wo": columns, "w2": columns, "w1": ("data", None)})
    out = jax.tree.map(lambda a: a.sharding, state)
    return Case(
        jax.jit(train_step, donate_argnums=(0,), out_shardings=(out, None)),
        (state, sharded(mesh, (batch, length + 1), jnp.int32, "data")),
        ({"params": "parameter", "opt": "optimizer state"}, "input"),
    )


class Classifier(nn.Module):
    """Images of 32 pixels through two convolutions with batch norm, and dense layers."""

    @nn.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        for features in (256, 512):
            x = nn.Conv(features, (3, 3), (2, 2))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = x.reshape(x.shape[0], -1)
        for _ in range(2):
            x = nn.LayerNorm()(nn.relu(nn.Dense(2048)(x)))
        return nn.Dense(1000)(x)


class State(TrainState):
    """The state of Flax, with the averages of batch norm."""

    batch_stats: Any = None


@advised("h100", "v5e")
def linen_sharded_optimizer(devices: list[Any], batch: int = 256) -> Case:
    """A step of Flax linen whose optimizer state is split over the devices, and whose weights are on each of them."""
    model, mesh = Classifier(), grid(devices, 1)

    def initial() -> Any:
        variables = model.init(jax.random.key(0), jnp.zeros((2, 32, 32, 3)))
        return State.create(  # type: ignore[no-untyped-call, unused-ignore]
            apply_fn=model.apply, params=variables["params"], batch_stats=variables["batch_stats"], tx=optax.adamw(1e-3)
        )

    def train_step(state: Any, images: Any, labels: Any) -> Any:
        def loss(params: Tree) -> Any:
            variables = {"params": params, "batch_stats": state.batch_stats}
            scores, changed = state.apply_fn(variables, images, mutable=["batch_stats"])
            return softmax_loss(scores, labels), changed["batch_stats"]

        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads, batch_stats=stats), value

    whole, split = shapes(initial, replicated(devices)), fully_sharded(initial, mesh)
    whole = jax.tree.map(lambda a: sharded(mesh, a.shape, a.dtype), whole)
    state = whole.replace(opt_state=split.opt_state)
    roles = state.replace(step="state", params="parameter", opt_state="optimizer state", batch_stats="state")
    out = jax.tree.map(lambda a: a.sharding, state)
    return Case(
        jax.jit(train_step, donate_argnums=(0,), out_shardings=(out, None)),
        (state, sharded(mesh, (batch, 32, 32, 3), jnp.float32, "data"), sharded(mesh, (batch,), jnp.int32, "data")),
        (roles, "input", "input"),
    )
