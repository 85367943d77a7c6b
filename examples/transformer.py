"""A training step of a transformer, data and tensor parallel: how large can the batch be, and what does it take?

    tb-memplugin fit examples/transformer.py:step --on v5e:4x4 --set model=4 \
        --vary batch=16:1024:16 --vary remat=none,dots,full

`step` describes a training step without running it: it returns a jitted function and the shapes of its arguments. The
shapes have shardings on `devices`, which exist only as descriptions. No array is created, so a model that is too large
for this machine compiles as well. Each keyword is a knob, for --set and --vary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

# What the forward pass of a layer keeps for the backward pass. "none" keeps everything.
POLICIES = {
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,  # keeps products with weights
    "full": jax.checkpoint_policies.nothing_saveable,  # keeps the input of the layer, computes the rest again
}
HEAD = 64  # the width of a head


def step(
    devices: list[Any],
    batch: int = 32,  # sequences per step, on all devices together
    remat: str = "none",  # none, dots or full
    model: int = 1,  # devices that share a layer's weights; the other axis splits the batch
    microbatches: int = 1,  # parts of the batch, one after the other, whose gradients are added up
    layers: int = 12,
    width: int = 1024,
    vocabulary: int = 32768,
    length: int = 1024,  # tokens per sequence
) -> tuple[Any, tuple[Any, ...]]:
    """Return a jitted training step with Adam, and the shapes of its arguments."""
    mesh = Mesh(np.array(devices).reshape(-1, model), ("data", "model"))

    def array(shape: tuple[int, ...], *axes: str | None, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))

    weights = {
        "embedding": array((vocabulary, width), "model"),
        "layers": {  # all layers in one array each, for jax.lax.scan
            "qkv": array((layers, width, 3, width // HEAD, HEAD), None, None, None, "model"),
            "out": array((layers, width // HEAD, HEAD, width), None, "model"),
            "up": array((layers, width, 4 * width), None, None, "model"),
            "down": array((layers, 4 * width, width), None, "model"),
        },
    }
    state = {"weights": weights, "mean": weights, "variance": weights, "count": array((), dtype=jnp.int32)}
    tokens = array((batch, length), "data", dtype=jnp.int32)

    def train(state: Any, tokens: Any) -> tuple[Any, Any]:
        loss, gradient = loss_and_gradient(state["weights"], tokens, layer_function(remat), microbatches)
        return adam(state, gradient), loss

    # Donated, the new state takes the place of the old one. For this it has to be sharded in the same way.
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    return jax.jit(train, donate_argnums=0, out_shardings=(shardings, None)), (state, tokens)


def layer_function(remat: str) -> Callable[..., Any]:
    """Return the function of one layer, which computes again what `remat` says."""
    return layer if remat == "none" else jax.checkpoint(layer, policy=POLICIES[remat])


def layer(x: Any, weights: Any) -> tuple[Any, None]:
    """Apply a layer: attention to earlier tokens, and a feed-forward network. Scopes name its memory."""
    with jax.named_scope("attention"):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dche->btche", normalize(x), weights["qkv"].astype(x.dtype)), 2, 0)
        scores = jnp.einsum("bthe,bshe->bhts", q, k).astype(jnp.float32) / HEAD**0.5
        earlier = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
        attention = jax.nn.softmax(jnp.where(earlier, scores, -1e9)).astype(x.dtype)
        mixed = jnp.einsum("bhts,bshe->bthe", attention, v)
        x = x + jnp.einsum("bthe,hed->btd", mixed, weights["out"].astype(x.dtype))
    with jax.named_scope("feed_forward"):
        hidden = jax.nn.gelu(normalize(x) @ weights["up"].astype(x.dtype))
        return x + hidden @ weights["down"].astype(x.dtype), None


def normalize(x: Any) -> Any:
    """Scale each token to a mean square of one."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6).astype(x.dtype)


def loss_and_gradient(weights: Any, tokens: Any, layer: Callable[..., Any], microbatches: int) -> tuple[Any, Any]:
    """Return the mean loss and its gradient, from one microbatch at a time."""

    def loss(weights: Any, tokens: Any) -> Any:
        x = weights["embedding"].astype(jnp.bfloat16)[tokens]
        x, _ = jax.lax.scan(layer, x, weights["layers"])
        with jax.named_scope("logits"):
            logits = normalize(x[:, :-1]) @ weights["embedding"].astype(x.dtype).T
            likelihood = jax.nn.log_softmax(logits.astype(jnp.float32))
            return -jnp.take_along_axis(likelihood, tokens[:, 1:, None], -1).mean()

    if microbatches == 1:
        return jax.value_and_grad(loss)(weights, tokens)
    # Every device takes part in every microbatch: item i of the batch belongs to microbatch i % microbatches.
    parts = jnp.swapaxes(tokens.reshape(-1, microbatches, tokens.shape[-1]), 0, 1)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(weights, part)), None

    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights))
    total, _ = jax.lax.scan(add, zero, parts)
    return jax.tree.map(lambda x: x / microbatches, total)  # type: ignore[no-any-return]


def adam(state: Any, gradient: Any, rate: float = 1e-3, decay: tuple[float, float] = (0.9, 0.999)) -> Any:
    """Return the state after one step of Adam."""
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: decay[0] * m + (1 - decay[0]) * g, state["mean"], gradient)
    variance = jax.tree.map(lambda v, g: decay[1] * v + (1 - decay[1]) * g * g, state["variance"], gradient)
    size = rate * jnp.sqrt(1 - decay[1] ** count) / (1 - decay[0] ** count)
    weights = jax.tree.map(lambda w, m, v: w - size * m / (jnp.sqrt(v) + 1e-8), state["weights"], mean, variance)
    return {"weights": weights, "mean": mean, "variance": variance, "count": count}
