"""Inference whose knobs store weights and caches in bf16, or that holds one large tensor which a loop can divide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from programs.advice_models import block
from programs.case import Case, Tree, advised
from programs.sharding import replicated, shapes

TARGETS = ("v5e", "h100")
NARROW = {"Store": {"narrow": True}}


def _narrow(tree: Tree, narrow: bool) -> Tree:
    """Return the tree with floating arrays in bf16, as the advice casts them."""

    def cast(a: Any) -> Any:
        return a.astype(jnp.bfloat16) if jnp.issubdtype(a.dtype, jnp.floating) else a

    return jax.tree.map(cast, tree) if narrow else tree


def _case(devices: list[Any], function: Any, params: Callable[[], Tree], given: Callable[[], Any], narrow: bool,
          roles: Any = "input", **jitted: Any) -> Case:  # fmt: skip
    """Return a case of f(params, *given), all of it in bf16 if asked."""
    one = replicated(devices[:1])
    made = [shapes(lambda tree=tree: _narrow(tree(), narrow), one) for tree in (params, given)]  # type: ignore[misc]
    return Case(jax.jit(function, **jitted), (made[0], *made[1]), ("parameter", *roles))


@advised(*TARGETS, **NARROW)
def wide_perceptron(devices: list[Any], narrow: bool = False) -> Case:
    """A perceptron that classifies a small batch."""

    def classify(params: Tree, x: Any) -> Any:
        for w in params:
            x = jax.nn.relu(x @ w)
        return x.argmax(-1)

    return _case(devices, classify, lambda: [jnp.zeros((4096, 4096))] * 6, lambda: (jnp.zeros((256, 4096)),), narrow,
                 ("input",))  # fmt: skip


def _decoder(layers: int, width: int, vocab: int) -> Tree:
    square = {name: jnp.zeros((width, width)) for name in "qkvo"}
    mlp = {"up": jnp.zeros((width, 4 * width)), "down": jnp.zeros((4 * width, width))}
    norms = {"norm": jnp.ones(width), "norm2": jnp.ones(width)}
    blocks = [square | mlp | norms] * layers
    return {"embed": jnp.zeros((vocab, width)), "blocks": blocks, "head": jnp.zeros((width, vocab))}


@advised(*TARGETS, **NARROW)
def wide_next_token(devices: list[Any], narrow: bool = False) -> Case:
    """The next token of a transformer in f32, layers in a Python loop."""

    def predict(params: Tree, tokens: Any) -> Any:
        x = params["embed"][tokens]
        for p in params["blocks"]:
            x = block(p, x)
        return (x[:, -1] @ params["head"]).argmax(-1)

    return _case(devices, predict, lambda: _decoder(4, 1024, 32768), lambda: (jnp.zeros((4, 256), jnp.int32),), narrow,
                 ("input",))  # fmt: skip


@advised(*TARGETS, **NARROW)
def wide_scanned(devices: list[Any], narrow: bool = False) -> Case:
    """A transformer in f32 whose layers are stacked and scanned."""

    def predict(params: Tree, tokens: Any) -> Any:
        x = params["embed"][tokens]
        x, _ = jax.lax.scan(lambda x, p: (block(p, x), None), x, params["layers"])
        return (x[:, -1] @ params["head"]).argmax(-1)

    def initial() -> Tree:
        made = _decoder(8, 1024, 32768)
        blocks = made.pop("blocks")
        return made | {"layers": jax.tree.map(lambda *a: jnp.stack(a), *blocks)}

    return _case(devices, predict, initial, lambda: (jnp.zeros((4, 256), jnp.int32),), narrow, ("input",))


def _cached(params: Tree, cache: Tree, token: Any, position: Any) -> Any:
    x, heads, updated = params["embed"][token], 16, []
    batch, width = x.shape
    for p, one in zip(params["blocks"], cache, strict=True):
        q, k, v = ((x @ p[name]).reshape(batch, heads, -1) for name in "qkv")
        one = {n: jax.lax.dynamic_update_index_in_dim(one[n], new, position, 1) for n, new in (("k", k), ("v", v))}
        scores = jnp.einsum("bhd,bthd->bht", q, one["k"]) / np.sqrt(width // heads)
        weights = jax.nn.softmax(scores.astype(jnp.float32), -1).astype(x.dtype)
        x = x + jnp.einsum("bht,bthd->bhd", weights, one["v"]).reshape(batch, width) @ p["o"]
        x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
        updated.append(one)
    return (x @ params["head"]).argmax(-1), updated


@advised(*TARGETS, **NARROW)
def wide_cache(devices: list[Any], narrow: bool = False) -> Case:
    """Decoding with a donated cache, both in f32."""

    def given() -> Any:
        cache = [{name: jnp.zeros((16, 2048, 16, 64)) for name in "kv"}] * 3
        return cache, jnp.zeros(16, jnp.int32), jnp.zeros((), jnp.int32)

    return _case(devices, _cached, lambda: _decoder(3, 1024, 8192), given, narrow, ("state", "input", "input"),
                 donate_argnums=(1,))  # fmt: skip


@advised(*TARGETS, **NARROW)
def wide_convolutions(devices: list[Any], narrow: bool = False) -> Case:
    """Convolutions in f32 with many channels."""

    def classify(params: Tree, x: Any) -> Any:
        for w in params["convs"]:
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return x.mean((1, 2)) @ params["head"]

    def initial() -> Tree:
        return {"convs": [jnp.zeros((3, 3, 1024, 1024))] * 6, "head": jnp.zeros((1024, 1000))}

    return _case(devices, classify, initial, lambda: (jnp.zeros((8, 16, 16, 1024)),), narrow, ("input",))


@advised(*TARGETS, **NARROW)
def wide_recurrence(devices: list[Any], narrow: bool = False) -> Case:
    """A recurrence over time with large weights."""

    def encode(params: Tree, x: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            return jnp.tanh(x @ params["input"] + h @ params["hidden"]), None

        return jax.lax.scan(cell, jnp.zeros_like(x[0]), x)[0]

    return _case(devices, encode, lambda: {name: jnp.zeros((4096, 4096)) for name in ("input", "hidden")},
                 lambda: (jnp.zeros((64, 32, 4096)),), narrow, ("input",))  # fmt: skip


@advised(*TARGETS, **NARROW)
def wide_linen(devices: list[Any], narrow: bool = False) -> Case:
    """A Flax encoder in f32; its layers follow the dtype of weights and inputs."""
    from flax import linen as nn

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(4):
                x = x + nn.MultiHeadDotProductAttention(16)(nn.LayerNorm()(x))
                x = x + nn.Dense(1024)(nn.gelu(nn.Dense(4096)(nn.LayerNorm()(x))))
            return nn.Dense(128)(x.mean(1))

    model = Encoder()
    return _case(
        devices, lambda params, x: model.apply(params, x),
        lambda: model.init(jax.random.key(0), jnp.zeros((1, 128, 1024))), lambda: (jnp.zeros((16, 128, 1024)),), narrow,
        ("input",),
    )  # fmt: skip


@advised(*TARGETS, **NARROW)
def wide_experts(devices: list[Any], narrow: bool = False) -> Case:
    """A mixture of experts in f32, each token through all of them by a weighted sum."""

    def mix(params: Tree, x: Any) -> Any:
        gates = jax.nn.softmax(x @ params["router"], -1)
        hidden = jax.nn.relu(jnp.einsum("td,edf->etf", x, params["up"]))
        return jnp.einsum("etf,efd,te->td", hidden, params["down"], gates)

    def initial() -> Tree:
        return {
            "router": jnp.zeros((1024, 16)), "up": jnp.zeros((16, 1024, 4096)), "down": jnp.zeros((16, 4096, 1024)),
        }  # fmt: skip

    return _case(devices, mix, initial, lambda: (jnp.zeros((256, 1024)),), narrow, ("input",))
