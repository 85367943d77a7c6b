"""Rings of devices that pass their shards on, in `shard_map`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from programs.case import Case, Tree, program
from programs.sharding import grid, sharded
from programs.training import rematerialized


@program("v5p", "tpu7x", donation={"donate": True}, rematerialization={"remat": "layer"})
def ring_attention(
    devices: list[Any], donate: bool = False, remat: str = "none", length: int = 16384, layers: int = 2
) -> Case:
    """Attention over a long sequence that is split between devices; keys and values travel around the ring."""
    width, heads = 1024, 8
    mesh = grid(devices, 1)
    count = mesh.shape["data"]
    ring = [(i, (i + 1) % count) for i in range(count)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        """Return attention of the device's queries to all keys, with a running softmax."""

        def fold(carry: Tree, _: Any) -> Any:
            k, v, total, weight, highest = carry
            scores = jnp.einsum("qhd,khd->hqk", q, k).astype(jnp.float32)
            top = jnp.maximum(highest, scores.max(axis=-1))
            old, new = jnp.exp(highest - top), jnp.exp(scores - top[..., None])
            total = total * old[..., None] + jnp.einsum("hqk,khd->hqd", new.astype(v.dtype), v)
            k, v = (jax.lax.ppermute(a, "data", ring) for a in (k, v))
            return (k, v, total, weight * old + new.sum(axis=-1), top), None

        shape = (heads, q.shape[0])
        start = jnp.zeros((*shape, width // heads)), jnp.zeros(shape), jnp.full(shape, -jnp.inf)
        start = jax.tree.map(lambda a: jax.lax.pcast(a, "data", to="varying"), start)
        _, _, total, weight, _ = jax.lax.scan(rematerialized(fold, remat), (k, v, *start), None, count)[0]
        return (total / weight[..., None]).astype(q.dtype).transpose(1, 0, 2)

    def local_loss(params: Tree, x: Any, y: Any) -> Any:
        for p in params:
            qkv = (x @ p["qkv"]).reshape(-1, 3, heads, width // heads)
            x = x + attend(qkv[:, 0], qkv[:, 1], qkv[:, 2]).reshape(x.shape) @ p["out"]
        return jax.lax.pmean(jnp.mean((x - y).astype(jnp.float32) ** 2), "data")

    one, split = PartitionSpec(), PartitionSpec("data")
    loss = jax.shard_map(local_loss, mesh=mesh, in_specs=(one, split, split), out_specs=one)

    def step(params: Tree, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - (0.01 * g).astype(p.dtype), params, grads), value

    weights = {
        "qkv": sharded(mesh, (width, 3 * width), jnp.bfloat16),
        "out": sharded(mesh, (width, width), jnp.bfloat16),
    }
    data = sharded(mesh, (length, width), jnp.bfloat16, "data")
    return Case(
        jax.jit(step, donate_argnums=(0,) if donate else ()),
        ([weights] * layers, data, data),
        ("parameter", "input", "input"),
    )


@program("v5e", "v4")
def ring_matmul(devices: list[Any], rows: int = 32768, width: int = 8192) -> Case:
    """A product whose weight is split: while one shard is multiplied, the next one arrives."""
    mesh = grid(devices, 1)
    count = mesh.shape["data"]
    ring = [(i, (i - 1) % count) for i in range(count)]

    def local(x: Any, w: Any) -> Any:
        first = jax.lax.axis_index("data")
        part = w.shape[0]
        total = jnp.zeros((x.shape[0], w.shape[1]), jnp.float32)
        for turn in range(count):
            start = ((first + turn) % count) * part
            total += jax.lax.dynamic_slice_in_dim(x, start, part, axis=1) @ w
            w = jax.lax.ppermute(w, "data", ring) if turn + 1 < count else w
        return jax.nn.relu(total).astype(x.dtype)

    split = PartitionSpec("data")

    def forward(weights: list[Any], x: Any) -> Any:
        for w in weights:
            x = jax.shard_map(local, mesh=mesh, in_specs=(split, split), out_specs=split)(x, w)
        return x

    weight = sharded(mesh, (width, width), jnp.bfloat16, "data")
    return Case(
        jax.jit(forward),
        ([weight] * 4, sharded(mesh, (rows, width), jnp.bfloat16, "data")),
        ("parameter", "input"),
    )
