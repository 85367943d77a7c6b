"""Networks over sequences: a GRU, a state space, a vision transformer, decoders, a mixture of experts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, advised
from programs.training import rematerialized
from programs.unseen.step import CHANGES, ON_ONE, Changed, step_case, weights


def softmax_loss(scores: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(scores.astype(jnp.float32), labels).mean()


def layer_norm(x: Any, scale: Any) -> Any:
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(jnp.square(wide).mean(axis=-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


@advised("v6e", "h100", **ON_ONE)
def gru(devices: list[Any], batch: int = 512, **changed: Any) -> Case:
    """Three GRU layers over 128 frames of speech, under Adam with clipped gradients."""
    width, length, labels = 1024, 128, 4096

    def params() -> Tree:
        layers = [weights(gates=(2 * width, 2 * width), new=(2 * width, width)) for _ in range(3)]
        return {"layers": layers, "out": jnp.zeros((width, labels))}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        xs = batch["frames"].swapaxes(0, 1)
        for p in params["layers"]:

            def cell(h: Any, x: Any, p: Tree = p) -> Any:
                reset, update = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, h], -1) @ p["gates"]), 2, axis=-1)
                new = jnp.tanh(jnp.concatenate([x, reset * h], -1) @ p["new"])
                h = (1 - update) * h + update * new
                return h, h

            _, xs = jax.lax.scan(rematerialized(cell, remat), jnp.zeros_like(xs[0]), xs)
        return softmax_loss(xs @ params["out"], batch["labels"].T)

    data = {"frames": ((batch, length, width), jnp.float32), "labels": ((batch, length), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


def attended(p: Tree, x: Any, heads: int, causal: bool) -> Any:
    batch, length, _ = x.shape
    q, k, v = ((x @ p[name]).reshape(batch, length, heads, -1) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("blhd,bmhd->bhlm", q, k).astype(jnp.float32) / q.shape[-1] ** 0.5
    if causal:
        scores = jnp.where(jnp.arange(length)[:, None] >= jnp.arange(length), scores, -jnp.inf)
    mixed = jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(scores).astype(v.dtype), v)
    return mixed.reshape(batch, length, -1) @ p["wo"]


def attention_shapes(width: int, hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        "norm_1": (width,), "wq": (width, width), "wk": (width, width), "wv": (width, width), "wo": (width, width),
        "norm_2": (width,), "w1": (width, hidden), "w2": (hidden, width),
    }  # fmt: skip


def encoder_layer(p: Tree, x: Any, heads: int, causal: bool = False) -> Any:
    x = x + attended(p, layer_norm(x, p["norm_1"]), heads, causal)
    return x + jax.nn.gelu(layer_norm(x, p["norm_2"]) @ p["w1"]) @ p["w2"]


@advised("v6e", "v5p", **ON_ONE)
def image_transformer(devices: list[Any], batch: int = 64, **changed: Any) -> Case:
    """A vision transformer of twelve layers, one after the other, under AdamW."""
    width, patches = 768, 196

    def params() -> Tree:
        return {
            "stem": jnp.zeros((768, width)),
            "position": jnp.zeros((patches, width)),
            "layers": [weights(**attention_shapes(width, 4 * width)) for _ in range(12)],
            "head": jnp.zeros((width, 1000)),
        }

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = batch["patches"] @ params["stem"] + params["position"]
        for p in params["layers"]:
            x = rematerialized(lambda p, x: encoder_layer(p, x, 12), remat)(p, x)
        return softmax_loss(x.mean(axis=1) @ params["head"], batch["label"])

    data = {"patches": ((batch, patches, 768), jnp.float32), "label": ((batch,), jnp.int32)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


def _decoder(
    devices: list[Any], layers: int, width: int, batch: int, length: int, optimizer: str, changed: dict[str, Any]
) -> Case:
    vocabulary = 16384

    def params() -> Tree:
        shapes = {name: (layers, *shape) for name, shape in attention_shapes(width, 4 * width).items()}
        return {"embed": jnp.zeros((vocabulary, width)), "layers": weights(**shapes)}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        body = rematerialized(lambda p, x: encoder_layer(p, x, width // 64, causal=True), remat)
        x = params["embed"][batch["tokens"]]
        x, _ = jax.lax.scan(lambda x, p: (body(p, x), None), x, params["layers"])
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = {"tokens": ((batch, length), jnp.int32), "next": ((batch, length), jnp.int32)}
    return step_case(devices, params, loss, data, optimizer, Changed(**changed))


@advised("v5p", "h100", **CHANGES)
def decoder_of_four(devices: list[Any], **changed: Any) -> Case:
    """A decoder with a scan over four wide layers, replicated on four devices, under Adam."""
    return _decoder(devices, 4, 2048, 16, 1024, "adam", changed)


@advised("v6e", "v5e", **ON_ONE)
def decoder_adafactor(devices: list[Any], **changed: Any) -> Case:
    """A decoder with a scan over sixteen layers, under Adafactor."""
    return _decoder(devices[:1], 16, 1024, 8, 512, "adafactor", changed)


@advised("v5p", **CHANGES)
def gated_experts(devices: list[Any], batch: int = 32, **changed: Any) -> Case:
    """Four layers whose tokens go through all of eight gated experts, under Adam, replicated."""
    width, hidden, count, length = 512, 1024, 8, 512

    def params() -> Tree:
        layer = {"gate": (width, count), "up": (count, width, hidden), "down": (count, hidden, width)}
        layers = [weights(norm_1=(width,), **layer) for _ in range(4)]
        return {"embed": jnp.zeros((32768, width)), "layers": layers}

    def layer(p: Tree, x: Any) -> Any:
        y = layer_norm(x, p["norm_1"])
        gates = jax.nn.softmax((y @ p["gate"]).astype(jnp.float32)).astype(x.dtype)
        h = jax.nn.silu(jnp.einsum("bld,edh->eblh", y, p["up"]))
        return x + jnp.einsum("eblh,ehd,ble->bld", h, p["down"], gates)

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["embed"][batch["tokens"]]
        for p in params["layers"]:
            x = rematerialized(layer, remat)(p, x)
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = {"tokens": ((batch, length), jnp.int32), "next": ((batch, length), jnp.int32)}
    return step_case(devices, params, loss, data, "adam", Changed(**changed))
