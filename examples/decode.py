"""A decode step with a key-value cache: how many tokens of cache fit?

    tb-memplugin fit examples/decode.py:step --on v5e:2x2 --vary tokens=1024:1048576:1024 --vary batch=1,8,32

`step` describes one step of inference without running it: it returns a jitted function and the shapes of its arguments,
with shardings on `devices`. Each device has a part of the heads, of the weights as of the cache. The cache is donated,
so that the new token is written in place: without donate_argnums, half as many tokens would fit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

HEAD = 128  # the width of a head


def step(
    devices: list[Any],
    tokens: int = 4096,  # of cache, for each sequence
    batch: int = 8,  # sequences
    layers: int = 16,
    width: int = 2048,
    shared: int = 8,  # heads of keys and values, each shared by width / HEAD / shared heads of queries
    vocabulary: int = 128256,
) -> tuple[Any, tuple[Any, ...]]:
    """Return a jitted step that reads one token for each sequence, and the shapes of its arguments."""
    split = min(len(devices), shared)
    mesh = Mesh(np.array(devices).reshape(-1, split), ("data", "model"))

    def array(shape: tuple[int, ...], *axes: str | None, dtype: Any = jnp.bfloat16) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))

    heads = width // HEAD
    weights = {
        "embedding": array((vocabulary, width), "model"),
        "q": array((layers, width, shared, heads // shared, HEAD), None, None, "model"),
        "kv": array((layers, width, 2, shared, HEAD), None, None, None, "model"),
        "out": array((layers, shared, heads // shared, HEAD, width), None, "model"),
        "up": array((layers, width, 4 * width), None, None, "model"),
        "down": array((layers, 4 * width, width), None, "model"),
    }
    # The last two dimensions are large: TPUs pad them, and a compiler that prefers another order copies the cache.
    cache = array((layers, 2, batch, shared, tokens, HEAD), None, None, "data", "model")
    token, position = array((batch,), "data", dtype=jnp.int32), array((), dtype=jnp.int32)
    function = jax.jit(decode, donate_argnums=1, out_shardings=(None, cache.sharding))
    return function, (weights, cache, token, position)


def decode(weights: Any, cache: Any, token: Any, position: Any) -> tuple[Any, Any]:
    """Return the logits of the next token, and the cache with this token's keys and values."""

    def layer(number: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        x, cache = carry
        own = {name: weights[name][number] for name in ("q", "kv", "out", "up", "down")}
        with jax.named_scope("attention"):
            kv = jnp.einsum("bd,dcse->cbse", normalize(x), own["kv"])
            cache = jax.lax.dynamic_update_slice(cache, kv[None, :, :, :, None], (number, 0, 0, 0, position, 0))
            x = x + attend(normalize(x), own, cache[number], position)
        with jax.named_scope("feed_forward"):
            return x + jax.nn.gelu(normalize(x) @ own["up"]) @ own["down"], cache

    # The cache is carried around the loop as a whole, so that one token of it changes in place.
    x, cache = jax.lax.fori_loop(0, cache.shape[0], layer, (weights["embedding"][token], cache))
    return normalize(x) @ weights["embedding"].T, cache


def attend(x: Any, weights: Any, cache: Any, position: Any) -> Any:
    """Return what a token reads from all tokens up to its position."""
    q = jnp.einsum("bd,dshe->bshe", x, weights["q"])
    scores = jnp.einsum("bshe,bste->bsht", q, cache[0]).astype(jnp.float32) / HEAD**0.5
    known = jnp.arange(cache.shape[3]) <= position
    attention = jax.nn.softmax(jnp.where(known, scores, -1e9)).astype(x.dtype)
    return jnp.einsum("bsht,bste,shed->bd", attention, cache[1], weights["out"])


def normalize(x: Any) -> Any:
    """Scale each token to a mean square of one."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6).astype(x.dtype)
