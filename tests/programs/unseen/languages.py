"""Language models with short sequences, dropout, two stacks or none of attention."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Case, Tree, advised
from programs.training import rematerialized
from programs.unseen.sequences import attention_shapes, encoder_layer, layer_norm, softmax_loss
from programs.unseen.step import CHANGES, ON_ONE, Changed, step_case, weights

TOKENS = jnp.int32


def rms_norm(x: Any, scale: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


@advised("v5e", "v6e", "h100", **ON_ONE)
def short_decoder(devices: list[Any], batch: int = 256, length: int = 128, **changed: Any) -> Case:
    """A decoder of eight layers over 128 tokens with tied embeddings, under AdamW."""
    vocabulary, width = 32000, 768

    def params() -> Tree:
        layers = [weights(**attention_shapes(width, 4 * width)) for _ in range(8)]
        return {"embed": jnp.zeros((vocabulary, width)), "position": jnp.zeros((length, width)), "layers": layers}

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["embed"][batch["tokens"]] + params["position"]
        for p in params["layers"]:
            x = rematerialized(lambda p, x: encoder_layer(p, x, 12, causal=True), remat)(p, x)
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = {"tokens": ((batch, length), TOKENS), "next": ((batch, length), TOKENS)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v5e", "v5p", "h100", **ON_ONE)
def masked_words(devices: list[Any], batch: int = 64, length: int = 256, **changed: Any) -> Case:
    """An encoder that predicts masked words, with dropout after attention and in the perceptron, under AdamW."""
    vocabulary, width, heads = 30522, 768, 12

    def params() -> Tree:
        layers = [weights(**attention_shapes(width, 4 * width)) for _ in range(12)]
        return {"embed": jnp.zeros((vocabulary, width)), "layers": layers, "out": weights(bias=(vocabulary,))}

    def dropped(x: Any, key: Any) -> Any:
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0).astype(x.dtype)

    def layer(p: Tree, x: Any, key: Any) -> Any:
        one, two = jax.random.split(key)
        y = layer_norm(x, p["norm_1"])
        q, k, v = ((y @ p[n]).reshape(*y.shape[:2], heads, -1) for n in ("wq", "wk", "wv"))
        share = jax.nn.softmax(jnp.einsum("blhd,bmhd->bhlm", q, k) / 8)
        y = jnp.einsum("bhlm,bmhd->blhd", dropped(share, one), v).reshape(x.shape) @ p["wo"]
        x = x + y
        return x + dropped(jax.nn.gelu(layer_norm(x, p["norm_2"]) @ p["w1"]) @ p["w2"], two)

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x = params["embed"][batch["tokens"]]
        keys = jax.random.split(jax.random.wrap_key_data(batch["key"].astype(jnp.uint32)[0]), 12)
        for p, key in zip(params["layers"], keys, strict=True):
            x = rematerialized(layer, remat)(p, x, key)
        return softmax_loss(x @ params["embed"].T + params["out"]["bias"], batch["words"])

    data = {"tokens": ((batch, length), TOKENS), "words": ((batch, length), TOKENS), "key": ((batch, 2), jnp.uint32)}
    return step_case(devices[:1], params, loss, data, "adamw", Changed(**changed))


@advised("v6e", "h100", **ON_ONE)
def translator(devices: list[Any], batch: int = 96, length: int = 128, **changed: Any) -> Case:
    """An encoder and a decoder with attention to the encoder's words and relative positions, under Adafactor."""
    vocabulary, width, heads = 32128, 768, 12

    def params() -> Tree:
        cross = dict.fromkeys(("cq", "ck", "cv", "co"), (width, width))
        ends = {name: weights(bias=(heads, 2 * length)) for name in ("encoder_bias", "decoder_bias")}
        encoder = [weights(**attention_shapes(width, 2048)) for _ in range(6)]
        decoder = [weights(norm_c=(width,), **cross, **attention_shapes(width, 2048)) for _ in range(6)]
        return {"embed": jnp.zeros((vocabulary, width)), "encoder": encoder, "decoder": decoder, **ends}

    def attend(q: Any, k: Any, v: Any, bias: Any) -> Any:
        q, k, v = (a.reshape(*a.shape[:2], heads, -1) for a in (q, k, v))
        scores = jnp.einsum("blhd,bmhd->bhlm", q, k)
        scores = scores.astype(jnp.float32) + bias
        return jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(scores).astype(v.dtype), v).reshape(*q.shape[:2], -1)

    def relative(table: Any, causal: bool) -> Any:
        distance = jnp.arange(length)[:, None] - jnp.arange(length)
        bias = table[:, distance + length].astype(jnp.float32)
        return jnp.where(distance >= 0, bias, -1e9) if causal else bias

    def layer(p: Tree, x: Any, bias: Any, words: Any = None) -> Any:
        y = rms_norm(x, p["norm_1"])
        x = x + attend(y @ p["wq"], y @ p["wk"], y @ p["wv"], bias) @ p["wo"]
        if words is not None:
            x = x + attend(rms_norm(x, p["norm_c"]) @ p["cq"], words @ p["ck"], words @ p["cv"], 0.0) @ p["co"]
        return x + jax.nn.relu(rms_norm(x, p["norm_2"]) @ p["w1"]) @ p["w2"]

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        words, x = params["embed"][batch["words"]], params["embed"][batch["said"]]
        for p in params["encoder"]:
            words = rematerialized(layer, remat)(p, words, relative(params["encoder_bias"]["bias"], False))
        for p in params["decoder"]:
            x = rematerialized(layer, remat)(p, x, relative(params["decoder_bias"]["bias"], True), words)
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = dict.fromkeys(("words", "said", "next"), ((batch, length), TOKENS))
    return step_case(devices[:1], params, loss, data, "adafactor", Changed(**changed))


@advised("v5e", "v6e", "h100", **ON_ONE)
def gated_recurrence(devices: list[Any], batch: int = 16, length: int = 1024, **changed: Any) -> Case:
    """Gated linear recurrences by an associative scan in place of attention, under Lion."""
    vocabulary, width = 32000, 1024

    def params() -> Tree:
        shapes = {"norm": (width,), "x": (width, 2 * width), "gate": (width, 2 * width), "out": (2 * width, width)}
        return {
            "embed": jnp.zeros((vocabulary, width)),
            "layers": weights(**{name: (6, *shape) for name, shape in shapes.items()}),
        }

    def layer(x: Any, p: Tree) -> Any:
        y = rms_norm(x, p["norm"])
        keep = jax.nn.sigmoid((y @ p["gate"]).astype(jnp.float32))
        new = (1 - keep) * (y @ p["x"]).astype(jnp.float32)

        def join(a: Any, b: Any) -> Any:
            return a[0] * b[0], b[0] * a[1] + b[1]

        _, h = jax.lax.associative_scan(join, (keep, new), axis=1)
        return x + h.astype(x.dtype) @ p["out"], None

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x, _ = jax.lax.scan(rematerialized(layer, remat), params["embed"][batch["tokens"]], params["layers"])
        return softmax_loss(x @ params["embed"].T, batch["next"])

    data = {"tokens": ((batch, length), TOKENS), "next": ((batch, length), TOKENS)}
    return step_case(devices[:1], params, loss, data, "lion", Changed(**changed))


@advised("v5e", "v5p", "h100", **CHANGES)
def short_decoder_of_four(devices: list[Any], batch: int = 512, length: int = 64, **changed: Any) -> Case:
    """A scan over ten layers with rotated positions, 64 tokens, replicated on four devices, under AdamW."""
    vocabulary, width, heads = 8192, 1024, 16

    def params() -> Tree:
        shapes = {name: (10, *shape) for name, shape in attention_shapes(width, 3 * width).items()}
        return {
            "embed": jnp.zeros((vocabulary, width)),
            "layers": weights(**shapes),
            "head": jnp.zeros((width, vocabulary)),
        }

    def rotated(x: Any) -> Any:
        angles = jnp.arange(length)[:, None] * 1e4 ** -jnp.linspace(0, 1, x.shape[-1] // 2)
        one, two = jnp.split(x, 2, axis=-1)
        sin, cos = jnp.sin(angles)[:, None].astype(x.dtype), jnp.cos(angles)[:, None].astype(x.dtype)
        return jnp.concatenate([one * cos - two * sin, one * sin + two * cos], axis=-1)

    def layer(x: Any, p: Tree) -> Any:
        y = rms_norm(x, p["norm_1"])
        q, k, v = ((y @ p[n]).reshape(*y.shape[:2], heads, -1) for n in ("wq", "wk", "wv"))
        y = jax.nn.dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        x = x + y.reshape(x.shape) @ p["wo"]
        return x + jax.nn.silu(rms_norm(x, p["norm_2"]) @ p["w1"]) @ p["w2"], None

    def loss(params: Tree, batch: Tree, remat: str) -> Any:
        x, _ = jax.lax.scan(rematerialized(layer, remat), params["embed"][batch["tokens"]], params["layers"])
        return softmax_loss(x @ params["head"], batch["next"])

    data = {"tokens": ((batch, length), TOKENS), "next": ((batch, length), TOKENS)}
    return step_case(devices, params, loss, data, "adamw", Changed(**changed))
