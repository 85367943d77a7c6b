"""Steps whose optimizer state, or whose activations, are in the host's memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, training_state, training_step
from programs.transformer import Sizes, block, cross_entropy, token_loss, transformer


@program("v5e", "v6e", rematerialization={"remat": "layer"})
def offloaded_state(devices: list[Any], remat: str = "none", offload: bool = True) -> Case:
    """A transformer whose Adam state is in pinned host memory between steps, donated."""
    sizes, optimizer = Sizes(layers=3), optax.adam(1e-3)
    one = replicated(devices[:1])
    host = one.with_memory_kind("pinned_host") if offload else one

    def initial() -> Tree:
        return training_state(transformer(sizes), optimizer)

    tree = jax.eval_shape(initial)
    # Scalars stay on the device, as the compiler takes no scalar arguments from the host.
    places = {
        "params": jax.tree.map(lambda _: one, tree["params"]),
        "opt": jax.tree.map(lambda a: host if a.ndim else one, tree["opt"]),
    }
    update = training_step(lambda p, t: token_loss(p, t, sizes.heads, remat), optimizer)

    def step(state: Tree, tokens: Any) -> Any:
        state, value = update(jax.device_put(state, jax.tree.map(lambda _: one, places)), tokens)
        return jax.device_put(state, places), value

    return Case(
        jax.jit(step, donate_argnums=(0,), out_shardings=(places, one)),
        (shapes(initial, places), split_batch(devices[:1])(sizes.tokens, jnp.int32)),
        (TRAINED, "input"),
    )


@program("v5p", "v6e", donation={"donate": True})
def offloaded_activations(devices: list[Any], donate: bool = False, offload: bool = True) -> Case:
    """Each layer's input goes to the host in the forward pass, and comes back in the backward pass."""
    sizes, optimizer = Sizes(layers=8, batch=16), optax.sgd(0.01)
    kept = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[] if offload else ["layer_input"],
        names_which_can_be_offloaded=["layer_input"] if offload else [],
        offload_src="device", offload_dst="pinned_host",
    )  # fmt: skip

    def layer(x: Any, p: Tree) -> Any:
        return block(p, checkpoint_name(x, "layer_input"), sizes.heads), None

    def loss(params: Tree, tokens: Any) -> Any:
        x = params["embed"][tokens[:, :-1]]
        x, _ = jax.lax.scan(jax.checkpoint(layer, policy=kept), x, params["layers"])
        return cross_entropy(x @ params["head"], tokens[:, 1:])

    def initial() -> Tree:
        return training_state(transformer(sizes, stacked=True), optimizer)

    return Case(
        jax.jit(training_step(loss, optimizer), donate_argnums=(0,) if donate else ()),
        (shapes(initial, replicated(devices[:1])), split_batch(devices[:1])(sizes.tokens, jnp.int32)),
        (TRAINED, "input"),
    )
