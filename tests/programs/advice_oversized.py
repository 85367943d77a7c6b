"""Programs in which one tensor is most of the memory, and a knob that computes it in parts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from programs.case import Case, advised
from programs.sharding import replicated

TARGETS = ("v5e", "h100")
PARTS = {"oversized": {"parts": True}}


def _case(devices: list[Any], function: Any, *given: tuple[tuple[int, ...], Any]) -> Case:
    """Return a case of f(*given), whose first array comes from a perceptron."""
    one, size = replicated(devices[:1]), given[0][0][-1]

    def whole(params: Any, x: Any, *others: Any) -> Any:
        for w in params:
            x = jax.nn.relu(x @ w)
        return function(x, *others)

    arguments = tuple(jax.ShapeDtypeStruct(shape, dtype, sharding=one) for shape, dtype in given)
    params = [jax.ShapeDtypeStruct((size, size), jnp.float32, sharding=one) for _ in range(8)]
    return Case(jax.jit(whole), (params, *arguments), ("parameter", *("input" for _ in given)))


@advised(*TARGETS, **PARTS)
def all_distances(devices: list[Any], parts: bool = False) -> Case:
    """The nearest of many points for each of many points."""

    def nearest(x: Any, y: Any) -> Any:
        def one(x: Any) -> Any:
            d = (x * x).sum(-1, keepdims=True) + (y * y).sum(-1) - 2 * x @ y.T
            return d.argmin(-1), jnp.sqrt(d.min(-1))

        if parts:
            return jax.lax.map(lambda x: one(x[None]), x, batch_size=len(x) // 16)
        return one(x)

    return _case(devices, nearest, ((16384, 256), jnp.float32), ((16384, 256), jnp.float32))


@advised(*TARGETS, **PARTS)
def all_scores(devices: list[Any], parts: bool = False) -> Case:
    """The best items of each user, from the scores of all."""

    def best(users: Any, items: Any) -> Any:
        def one(users: Any) -> Any:
            return jax.lax.top_k(users @ items.T, 8)

        return jax.lax.map(one, users, batch_size=len(users) // 16) if parts else one(users)

    return _case(devices, best, ((4096, 64), jnp.float32), ((131072, 64), jnp.float32))


@advised(*TARGETS, **PARTS)
def all_attention(devices: list[Any], parts: bool = False) -> Case:
    """Attention over a long sequence, whose scores are quadratic in it."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        def one(q: Any) -> Any:
            return jax.nn.softmax(q @ k.T / 8, -1) @ v

        return jax.lax.map(one, q, batch_size=len(q) // 16) if parts else one(q)

    return _case(devices, attend, *(((16384, 64), jnp.float32) for _ in range(3)))


@advised(*TARGETS, **PARTS)
def all_kernels(devices: list[Any], parts: bool = False) -> Case:
    """A Gaussian kernel of many points, times a vector, and the sum of each row."""

    def smooth(x: Any, y: Any) -> Any:
        def one(x: Any) -> Any:
            k = jnp.exp(x @ x0.T)
            return k @ y, k.sum(-1)

        x0 = x
        return jax.lax.map(one, x, batch_size=len(x) // 16) if parts else one(x)

    return _case(devices, smooth, ((16384, 32), jnp.float32), ((16384, 16), jnp.float32))


@advised(*TARGETS, **PARTS)
def all_classes(devices: list[Any], parts: bool = False) -> Case:
    """The mean log-likelihood of labels under many classes."""

    def score(x: Any, w: Any, labels: Any) -> Any:
        def one(pair: Any) -> Any:
            x, label = pair
            scores = jax.nn.log_softmax(x @ w)
            return jnp.take_along_axis(scores, label[..., None], -1)[..., 0]

        return (jax.lax.map(one, (x, labels), batch_size=len(x) // 16) if parts else one((x, labels))).mean()

    return _case(devices, score, ((8192, 256), jnp.float32), ((256, 65536), jnp.float32), ((8192,), jnp.int32))


@advised(*TARGETS, **PARTS)
def all_masks(devices: list[Any], parts: bool = False) -> Case:
    """Pairs of boxes: the overlap of each with each other, and how many overlap."""

    def count(x: Any, y: Any) -> Any:
        def one(x: Any) -> Any:
            near = jax.nn.sigmoid(x @ y.T)
            return jnp.sort(near, -1)[..., -4:]

        return jax.lax.map(one, x, batch_size=len(x) // 16) if parts else one(x)

    return _case(devices, count, ((8192, 128), jnp.float32), ((16384, 128), jnp.float32))


@advised(*TARGETS, **PARTS)
def all_logits(devices: list[Any], parts: bool = False) -> Case:
    """Training with a loss over many classes, whose logits are most of the memory."""

    def step(w: Any, params: Any, x: Any, labels: Any) -> Any:
        def loss(trained: Any) -> Any:
            w, params = trained

            def one(pair: Any) -> Any:
                x, label = pair
                scores = jax.nn.log_softmax(x @ w)
                return jnp.take_along_axis(scores, label[..., None], -1)[..., 0]

            y = x
            for p in params:
                y = jax.nn.relu(y @ p)
            given, size = (y, labels), len(x) // 16
            return -(jax.lax.map(jax.checkpoint(one), given, batch_size=size) if parts else one(given)).mean()

        grads = jax.grad(loss)((w, params))
        return jax.tree.map(lambda p, g: p - 0.1 * g, (w, params), grads)

    one = replicated(devices[:1])
    weights = [jax.ShapeDtypeStruct((256, 256), jnp.float32, sharding=one) for _ in range(4)]
    w = jax.ShapeDtypeStruct((256, 65536), jnp.float32, sharding=one)
    x = jax.ShapeDtypeStruct((8192, 256), jnp.float32, sharding=one)
    labels = jax.ShapeDtypeStruct((8192,), jnp.int32, sharding=one)
    return Case(
        jax.jit(step, donate_argnums=(0, 1)), (w, weights, x, labels), ("parameter", "parameter", "input", "input")
    )
