"""Programs without training: decoding with a cache of keys and values, quantized weights, scoring, evaluation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Case, Tree, program
from programs.sharding import grid, replicated, shapes, sharded, split_batch
from programs.transformer import Sizes, block, cross_entropy, logits, rms_norm, transformer


def cached_attention(p: Tree, x: Any, cache: Tree, position: Any, heads: int) -> tuple[Any, Tree]:
    """Return attention of one token to those in the cache, and the cache with the token's key and value."""
    batch, width = x.shape
    qkv = (rms_norm(x, p["norm_1"]) @ p["qkv"]).reshape(batch, 3, heads, width // heads)
    cache = {
        name: jax.lax.dynamic_update_index_in_dim(cache[name], qkv[:, i], position, axis=1)
        for i, name in enumerate("kv", start=1)
    }
    scores = jnp.einsum("bhd,bthd->bht", qkv[:, 0], cache["k"]).astype(jnp.float32) * (width // heads) ** -0.5
    seen = jnp.arange(scores.shape[-1]) <= position
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1).astype(x.dtype)
    return jnp.einsum("bht,bthd->bhd", weights, cache["v"]).reshape(batch, width) @ p["out"], cache


def decode(params: Tree, cache: list[Tree], tokens: Any, position: Any, heads: int) -> tuple[Any, list[Tree]]:
    """Return the next token of each sequence, and the caches of all layers."""
    x, updated = params["embed"][tokens], []
    for p, one in zip(params["layers"], cache, strict=True):
        mixed, one = cached_attention(p, x, one, position, heads)
        x = x + mixed
        x = x + jax.nn.gelu(rms_norm(x, p["norm_2"]) @ p["up"]) @ p["down"]
        updated.append(one)
    return jnp.argmax(rms_norm(x, params["norm"]) @ params["head"], axis=-1), updated


@program("v5e", "tpu7x", "h100", donation={"donate": True})
def decode_step(devices: list[Any], donate: bool = False, batch: int = 32, length: int = 4096) -> Case:
    """One step of decoding in bf16; the cache of each layer is state, and donated where asked."""
    sizes = Sizes(layers=4)
    one = replicated(devices[:1])

    def caches() -> Tree:
        shape = (batch, length, sizes.heads, sizes.width // sizes.heads)
        return [{name: jnp.zeros(shape, jnp.bfloat16) for name in "kv"} for _ in range(sizes.layers)]

    def step(params: Tree, cache: Tree, tokens: Any, position: Any) -> Any:
        return decode(params, cache, tokens, position, sizes.heads)

    return Case(
        jax.jit(step, donate_argnums=(1,) if donate else ()),
        (
            shapes(lambda: transformer(sizes, dtype=jnp.bfloat16), one),
            shapes(caches, one),
            shapes(lambda: jnp.zeros(batch, jnp.int32), one),
            shapes(lambda: jnp.zeros((), jnp.int32), one),
        ),
        ("parameter", "state", "input", "input"),
    )


@program("v5e", "v6e")
def generate_int8(devices: list[Any], batch: int = 16, length: int = 512) -> Case:
    """Generation of many tokens by a loop; weights are int8 with a scale for each column, both parameters."""
    sizes = Sizes(width=2048, heads=16, hidden=8192, layers=3)
    one = replicated(devices[:1])

    def quantized() -> Tree:
        def quantize(path: Any, a: Any) -> Any:
            if a.ndim < 2 or path[0].key == "embed":
                return a
            return {"q": jnp.zeros(a.shape, jnp.int8), "scale": jnp.zeros(a.shape[-1], jnp.bfloat16)}

        return jax.tree_util.tree_map_with_path(quantize, transformer(sizes, dtype=jnp.bfloat16))

    def wide(tree: Tree) -> Tree:
        def is_quantized(a: Tree) -> bool:
            return isinstance(a, dict) and "q" in a

        return jax.tree.map(
            lambda a: a["q"].astype(jnp.bfloat16) * a["scale"] if is_quantized(a) else a, tree, is_leaf=is_quantized
        )

    def generate(params: Tree, prompt: Any) -> Any:
        shape = (batch, length, sizes.heads, sizes.width // sizes.heads)
        cache = [{name: jnp.zeros(shape, jnp.bfloat16) for name in "kv"} for _ in range(sizes.layers)]

        def step(carry: Tree, position: Any) -> Any:
            tokens, cache = carry
            tokens, cache = decode(wide(params), cache, tokens, position, sizes.heads)
            return (tokens, cache), tokens

        return jax.lax.scan(step, (prompt, cache), jnp.arange(length))[1]

    return Case(
        jax.jit(generate),
        (shapes(quantized, one), shapes(lambda: jnp.zeros(batch, jnp.int64), one)),
        ("parameter", "input"),
    )


@program("v4", "v5p", "h100", outputs={"output": "bfloat16"})
def score_logits(devices: list[Any], output: str = "float32", batch: int = 32) -> Case:
    """Inference that returns the logits of each token in f32, most of its memory."""
    sizes = Sizes(layers=3, batch=batch)
    data = split_batch(devices)

    def forward(params: Tree, tokens: Any) -> Any:
        return logits(params, tokens, sizes.heads).astype(output)

    return Case(
        jax.jit(forward),
        (
            shapes(lambda: transformer(sizes, dtype=jnp.bfloat16), replicated(devices)),
            data((batch, sizes.length), jnp.int32),
        ),
        ("parameter", "input"),
    )


@program("v5e", "v5p")
def evaluate(devices: list[Any], batch: int = 32) -> Case:
    """Loss and accuracy of a batch, with weights in tensor parallelism; nothing is updated but the sums of metrics."""
    sizes, mesh = Sizes(layers=6, width=1536, heads=12, hidden=6144), grid(devices)

    def eval_step(params: Tree, metrics: Tree, tokens: Any) -> Any:
        x = params["embed"][tokens[:, :-1]].astype(jnp.bfloat16)
        x, _ = jax.lax.scan(lambda x, p: (block(p, x, sizes.heads).astype(x.dtype), None), x, params["layers"])
        scores, labels = rms_norm(x, params["norm"]) @ params["head"], tokens[:, 1:]
        right = jnp.mean(jnp.argmax(scores, axis=-1) == labels)
        return {"loss": metrics["loss"] + cross_entropy(scores, labels), "accuracy": metrics["accuracy"] + right}

    def place(a: Any) -> Any:
        axes = ("model",) if a.ndim > 1 else ()
        return sharded(mesh, a.shape, a.dtype, *(None for _ in a.shape[len(axes) :]), *axes)

    def metrics() -> Tree:
        return {"loss": jnp.zeros(()), "accuracy": jnp.zeros(())}

    return Case(
        jax.jit(eval_step),
        (
            jax.tree.map(place, jax.eval_shape(lambda: transformer(sizes, stacked=True))),
            jax.tree.map(place, jax.eval_shape(metrics)),
            sharded(mesh, (batch, sizes.length + 1), jnp.int32, "data"),
        ),
        ("parameter", "state", "input"),
    )
