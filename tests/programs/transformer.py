"""A decoder-only transformer in plain JAX, and its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Tree
from programs.training import cast, rematerialized


@dataclass(frozen=True)
class Sizes:
    """The sizes of a transformer and of its batches."""

    vocabulary: int = 32768
    width: int = 1024
    layers: int = 4
    heads: int = 16
    hidden: int = 4096
    length: int = 512
    batch: int = 8

    @property
    def tokens(self) -> tuple[int, int]:
        return self.batch, self.length + 1

    def layer_shapes(self) -> dict[str, tuple[int, ...]]:
        width, hidden = self.width, self.hidden
        return {
            "norm_1": (width,), "qkv": (width, 3 * width), "out": (width, width),
            "norm_2": (width,), "up": (width, hidden), "down": (hidden, width),
        }  # fmt: skip


def transformer(sizes: Sizes, stacked: bool = False, dtype: Any = jnp.float32) -> Tree:
    """Return parameters of zeros; `stacked` layers are one array for each weight, for `jax.lax.scan`."""
    of_layer = sizes.layer_shapes()
    if stacked:
        layers: Tree = {name: jnp.zeros((sizes.layers, *shape), dtype) for name, shape in of_layer.items()}
    else:
        layers = [{name: jnp.zeros(shape, dtype) for name, shape in of_layer.items()} for _ in range(sizes.layers)]
    return {
        "embed": jnp.zeros((sizes.vocabulary, sizes.width), dtype),
        "layers": layers,
        "norm": jnp.zeros((sizes.width,), dtype),
        "head": jnp.zeros((sizes.width, sizes.vocabulary), dtype),
    }


def rms_norm(x: Any, weight: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype) * weight


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return causal attention of [batch, length, heads, features], with scores in f32."""
    length = q.shape[1]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def block(p: Tree, x: Any, heads: int) -> Any:
    batch, length, width = x.shape
    with jax.named_scope("attention"):
        qkv = (rms_norm(x, p["norm_1"]) @ p["qkv"]).reshape(batch, length, 3, heads, width // heads)
        mixed = attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
        x = x + mixed.reshape(batch, length, width) @ p["out"]
    with jax.named_scope("mlp"):
        return x + jax.nn.gelu(rms_norm(x, p["norm_2"]) @ p["up"]) @ p["down"]


def logits(params: Tree, tokens: Any, heads: int, remat: str = "none", compute: str = "float32") -> Any:
    """Return logits in the dtype that the products are computed in."""
    params = cast(params, compute)
    layer = rematerialized(lambda p, x: block(p, x, heads), remat)
    x = params["embed"][tokens]
    if isinstance(params["layers"], dict):
        x, _ = jax.lax.scan(lambda x, p: (layer(p, x), None), x, params["layers"])
    else:
        for p in params["layers"]:
            x = layer(p, x)
    with jax.named_scope("head"):
        return rms_norm(x, params["norm"]) @ params["head"]


def cross_entropy(scores: Any, labels: Any) -> Any:
    """Return the mean cross entropy, computed in f32."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores.astype(jnp.float32)), labels[..., None], axis=-1)
    return -jnp.mean(chosen)


def token_loss(params: Tree, tokens: Any, heads: int, remat: str = "none", compute: str = "float32") -> Any:
    """Return the loss of predicting each next token."""
    return cross_entropy(logits(params, tokens[:, :-1], heads, remat, compute), tokens[:, 1:])
