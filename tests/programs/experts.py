"""A mixture of experts, each expert on one device of the mesh."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec
from programs.case import Case, Tree, program
from programs.sharding import grid, sharded, sharded_by_name
from programs.training import TRAINED, jit_step, rematerialized, training_state, training_step
from programs.transformer import Sizes, attention, cross_entropy, rms_norm


@program(
    "v5e", "v6e", "h100",
    donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
)  # fmt: skip
def experts(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none", batch: int = 16
) -> Case:
    """A transformer with 16 experts, whose tokens travel between devices by all-to-all."""
    sizes, count, layers = Sizes(width=1024, hidden=2048), 16, 2
    mesh, optimizer = grid(devices, 1), optax.adamw(1e-4)

    def initial() -> Tree:
        width, hidden = sizes.width, sizes.hidden
        layer = {
            "norm_1": jnp.zeros((layers, width)), "qkv": jnp.zeros((layers, width, 3 * width)),
            "out": jnp.zeros((layers, width, width)), "norm_2": jnp.zeros((layers, width)),
            "router": jnp.zeros((layers, width, count)),
            "expert_up": jnp.zeros((layers, count, width, hidden)),
            "expert_down": jnp.zeros((layers, count, hidden, width)),
        }  # fmt: skip
        head, embed = jnp.zeros((width, sizes.vocabulary)), jnp.zeros((sizes.vocabulary, width))
        return training_state({"embed": embed, "layers": layer, "head": head}, optimizer)

    def split(x: Any, *axes: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*axes)))

    def mixture(p: Tree, x: Any) -> Any:
        """Send each token to its best expert, which takes twice its share of them at most."""
        length = x.shape[1]
        capacity = 2 * length // count
        gates = jax.nn.softmax((x @ p["router"]).astype(jnp.float32), axis=-1)
        best = jax.nn.one_hot(jnp.argmax(gates, axis=-1), count)
        place = (jnp.cumsum(best, axis=1) - 1) * best
        slots = jax.nn.one_hot(place.sum(-1), capacity)[:, :, None, :] * best[..., None]
        sent = split(jnp.einsum("gtec,gtd->egcd", slots.astype(x.dtype), x), "data")
        h = jax.nn.gelu(jnp.einsum("egcd,edh->egch", sent, p["expert_up"]))
        back = split(jnp.einsum("egch,ehd->egcd", h, p["expert_down"]), None, "data")
        return jnp.einsum("gtec,egcd->gtd", (slots * gates[..., None]).astype(x.dtype), back)

    def layer(p: Tree, x: Any) -> Any:
        groups, length, _ = x.shape
        qkv = (rms_norm(x, p["norm_1"]) @ p["qkv"]).reshape(groups, length, 3, sizes.heads, -1)
        x = x + attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]).reshape(x.shape) @ p["out"]
        return split(x + mixture(p, rms_norm(x, p["norm_2"])), "data")

    def loss(params: Tree, tokens: Any) -> Any:
        params = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
        one = rematerialized(layer, remat)
        x = params["embed"][tokens[:, :-1]]
        x, _ = jax.lax.scan(lambda x, p: (one(p, x), None), x, params["layers"])
        return cross_entropy(x @ params["head"], tokens[:, 1:])

    split_experts = ("data", None, None)
    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (
            sharded_by_name(initial, mesh, {"expert_up": split_experts, "expert_down": split_experts}),
            sharded(mesh, (batch, sizes.length + 1), jnp.int32, "data"),
        ),
        (TRAINED, "input"),
    )
