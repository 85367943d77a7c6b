"""Decoder-only transformers in plain JAX: layers in a Python loop and in a scan, on one device and sharded."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec
from programs.activations.step import Changes, checkpointed, training_case, training_step
from programs.case import Case, Tree

WIDTH, HEADS, VOCABULARY = 1024, 8, 16384


def block_parameters(width: int = WIDTH, dtype: Any = jnp.float32) -> Tree:
    return {
        "qkv": jnp.zeros((width, 3 * width), dtype),
        "out": jnp.zeros((width, width), dtype),
        "up": jnp.zeros((width, 4 * width), dtype),
        "down": jnp.zeros((4 * width, width), dtype),
        "norm_1": jnp.zeros(width, dtype),
        "norm_2": jnp.zeros(width, dtype),
    }


def norm(x: Any, scale: Any) -> Any:
    variance = jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True)
    return (x * jax.lax.rsqrt(variance + 1e-6)).astype(x.dtype) * (1 + scale).astype(x.dtype)


def attention(x: Any, params: Tree, heads: int = HEADS) -> Any:
    batch, time, width = x.shape
    q, k, v = jnp.split(x @ params["qkv"].astype(x.dtype), 3, -1)
    q, k, v = (a.reshape(batch, time, heads, -1) for a in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((time, time), bool)), scores.astype(jnp.float32), -1e9)
    weights = jax.nn.softmax(scores).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, time, width)
    return mixed @ params["out"].astype(x.dtype)


def block(x: Any, params: Tree) -> Any:
    x = x + attention(norm(x, params["norm_1"]), params)
    hidden = jax.nn.gelu(norm(x, params["norm_2"]) @ params["up"].astype(x.dtype))
    return x + hidden @ params["down"].astype(x.dtype)


def cross_entropy(x: Any, embedding: Any, tokens: Any) -> Any:
    logits = (x @ embedding.astype(x.dtype).T).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


def unrolled_parameters(layers: int, dtype: Any = jnp.float32) -> Tree:
    return {
        "embedding": jnp.zeros((VOCABULARY, WIDTH), dtype),
        "blocks": [block_parameters(dtype=dtype) for _ in range(layers)],
    }


def unrolled_loss(remat: str, dtype: Any = jnp.bfloat16) -> Any:
    def loss(params: Tree, batch: Tree) -> Any:
        x = params["embedding"].astype(dtype)[batch["tokens"]]
        apply = checkpointed(block, remat)
        for layer in params["blocks"]:
            x = apply(x, layer)
        return cross_entropy(x, params["embedding"], batch["tokens"])

    return loss


def scanned_parameters(layers: int, dtype: Any = jnp.float32) -> Tree:
    stacked = jax.tree.map(lambda a: jnp.zeros((layers, *a.shape), a.dtype), block_parameters(dtype=dtype))
    return {"embedding": jnp.zeros((VOCABULARY, WIDTH), dtype), "blocks": stacked}


def scanned_loss(remat: str, dtype: Any = jnp.bfloat16) -> Any:
    def loss(params: Tree, batch: Tree) -> Any:
        x = params["embedding"].astype(dtype)[batch["tokens"]]
        apply = checkpointed(block, remat)
        x, _ = jax.lax.scan(lambda x, layer: (apply(x, layer), None), x, params["blocks"])
        return cross_entropy(x, params["embedding"], batch["tokens"])

    return loss


@training_step("v5e", "v6e", "h100")
def decoder_unrolled(
    devices: list[Any], batch: int = 16, time: int = 1024, layers: int = 8, remat: str = "", **changes: Any
) -> Case:
    """Layers in a Python loop, bf16 activations of f32 weights."""
    return training_case(
        devices,
        lambda: unrolled_parameters(layers),
        unrolled_loss(remat),
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**changes),
    )


@training_step("v5e", "v5p", "h100")
def decoder_scanned(
    devices: list[Any], batch: int = 16, time: int = 1024, layers: int = 8, remat: str = "", **changes: Any
) -> Case:
    """Layers in a scan, bf16 activations of f32 weights."""
    return training_case(
        devices,
        lambda: scanned_parameters(layers),
        scanned_loss(remat),
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**changes),
    )


@training_step("v5e", "h100")
def decoder_scanned_float32(
    devices: list[Any], batch: int = 8, time: int = 512, layers: int = 12, remat: str = "", **changes: Any
) -> Case:
    """Layers in a scan, everything in f32, with SGD and momentum; nothing is donated."""
    return training_case(
        devices,
        lambda: scanned_parameters(layers),
        scanned_loss(remat, jnp.float32),
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**{"donate": False, **changes}),
        optax.sgd(1e-2, momentum=0.9),
    )


@training_step("v4", "v6e", "h100")
def decoder_fully_sharded(
    devices: list[Any], batch: int = 32, time: int = 1024, layers: int = 8, remat: str = "", **changes: Any
) -> Case:
    """Layers in a scan, weights and batch sharded over four devices."""

    def spec(path: Any, leaf: Any) -> Any:
        return PartitionSpec(*[None] * (leaf.ndim - 2), "data") if leaf.ndim >= 2 else PartitionSpec()

    return training_case(
        devices,
        lambda: scanned_parameters(layers),
        scanned_loss(remat),
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**changes),
        count=4,
        sharding=spec,
    )


@training_step("v5e", "v5p", "h100")
def decoder_bfloat16(
    devices: list[Any], batch: int = 32, time: int = 512, layers: int = 4, remat: str = "", **changes: Any
) -> Case:
    """Layers in a Python loop, bf16 weights and Adam's state in bf16."""
    return training_case(
        devices,
        lambda: unrolled_parameters(layers, jnp.bfloat16),
        unrolled_loss(remat),
        {"tokens": ((batch, time), jnp.int32)},
        Changes(**changes),
        optax.adam(1e-3),
    )
