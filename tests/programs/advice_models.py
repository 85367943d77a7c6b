"""Models and training steps whose knobs carry out advice on arguments, results and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from programs.case import Case, Tree

Loss = Callable[..., Any]


@dataclass(frozen=True)
class Model:
    """A model: its initial parameters, its loss of (params, batch), and the shapes and dtypes of a batch."""

    initial: Callable[[], Tree]
    loss: Callable[[Tree, Tree], Any]
    batch: dict[str, tuple[tuple[int, ...], Any]]


def mlp(width: int = 4096, layers: int = 6, batch: int = 4096, dtype: Any = jnp.float32) -> Model:
    """Return a multilayer perceptron with a regression loss."""

    def initial() -> Tree:
        return {
            f"layer_{i}": {"w": jnp.zeros((width, width), dtype), "b": jnp.zeros(width, dtype)} for i in range(layers)
        }

    def loss(params: Tree, batch: Tree) -> Any:
        x = batch["x"]
        for i in range(layers):
            x = jax.nn.gelu(x @ params[f"layer_{i}"]["w"] + params[f"layer_{i}"]["b"])
        return jnp.mean((x - batch["y"]).astype(jnp.float32) ** 2)

    return Model(initial, loss, {"x": ((batch, width), dtype), "y": ((batch, width), dtype)})


def block(w: Tree, x: Array, heads: int = 16) -> Any:
    """Return a transformer block's output."""
    batch, length, width = x.shape
    y = x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6).astype(x.dtype) * w["norm"]
    q, k, v = (jnp.reshape(y @ w[name], (batch, length, heads, width // heads)) for name in ("q", "k", "v"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
    mask = jnp.tril(jnp.ones((length, length), bool))
    scores = jax.nn.softmax(jnp.where(mask, scores.astype(jnp.float32), -1e30), axis=-1).astype(x.dtype)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(batch, length, width) @ w["o"]
    y = x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6).astype(x.dtype) * w["norm2"]
    return x + jax.nn.gelu(y @ w["up"]) @ w["down"]


def language_model(
    width: int = 1024, layers: int = 8, vocab: int = 32768, batch: int = 8, length: int = 512,
    scan: bool = False, remat: bool = False, dtype: Any = jnp.float32,
) -> Model:  # fmt: skip
    """Return a decoder-only transformer with cross-entropy."""

    def one() -> Tree:
        square = {name: jnp.zeros((width, width), dtype) for name in "qkvo"}
        mlp = {"up": jnp.zeros((width, 4 * width), dtype), "down": jnp.zeros((4 * width, width), dtype)}
        return square | mlp | {"norm": jnp.ones(width, dtype), "norm2": jnp.ones(width, dtype)}

    def initial() -> Tree:
        blocks = [one() for _ in range(layers)]
        stacked = jax.tree.map(lambda *a: jnp.stack(a), *blocks) if scan else {f"b{i}": b for i, b in enumerate(blocks)}
        return {"embed": jnp.zeros((vocab, width), dtype), "blocks": stacked, "head": jnp.zeros((width, vocab), dtype)}

    def hidden(params: Tree, tokens: Array) -> Any:
        x = params["embed"][tokens]
        apply = jax.checkpoint(block) if remat else block
        if scan:
            return jax.lax.scan(lambda x, w: (apply(w, x), None), x, params["blocks"])[0]
        for i in range(layers):
            x = apply(params["blocks"][f"b{i}"], x)
        return x

    def loss(params: Tree, batch: Tree) -> Any:
        logits = (hidden(params, batch["tokens"]) @ params["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    return Model(initial, loss, dict.fromkeys(("tokens", "labels"), ((batch, length), jnp.int32)))


def convolutional(
    width: int = 256, layers: int = 8, batch: int = 64, size: int = 64, dtype: Any = jnp.float32
) -> Model:
    """Return a convolutional classifier."""

    def initial() -> Tree:
        first = {"stem": jnp.zeros((3, 3, 3, width), dtype), "head": jnp.zeros((width, 1000), dtype)}
        return first | {f"conv_{i}": jnp.zeros((3, 3, width, width), dtype) for i in range(layers)}

    def conv(x: Array, w: Array) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(params: Tree, batch: Tree) -> Any:
        x = jax.nn.relu(conv(batch["image"], params["stem"]))
        for i in range(layers):
            x = x + jax.nn.relu(conv(x, params[f"conv_{i}"]))
        logits = (x.mean((1, 2)) @ params["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    return Model(initial, loss, {"image": ((batch, size, size, 3), dtype), "label": ((batch,), jnp.int32)})


def optimizer(name: str, mu_dtype: Any = None, all_dtype: Any = None) -> Any:
    """Return an Optax optimizer; `all_dtype` stores all floating state in a dtype, and updates in f32."""
    made = {
        "adam": lambda: optax.adam(1e-3, mu_dtype=mu_dtype),
        "adamw": lambda: optax.adamw(1e-3, mu_dtype=mu_dtype),
        "lion": lambda: optax.lion(1e-4, mu_dtype=mu_dtype),
        "momentum": lambda: optax.sgd(1e-2, momentum=0.9, accumulator_dtype=mu_dtype),
        "adafactor": lambda: optax.adafactor(1e-3),
        "rmsprop": lambda: optax.rmsprop(1e-3, momentum=0.9),
        "adagrad": lambda: optax.adagrad(1e-2),
        "sgd": lambda: optax.sgd(1e-2),
        "clipped": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, mu_dtype=mu_dtype)),
    }[name]()
    return made if all_dtype is None else stored_in(made, all_dtype)


def stored_in(inner: Any, dtype: Any) -> Any:
    """Return an optimizer whose large floating state is stored in a dtype."""

    def cast(tree: Tree, to: Any) -> Tree:
        return jax.tree.map(lambda a: a.astype(to) if a.ndim > 0 and is_floating(a) else a, tree)

    def update(grads: Tree, state: Tree, params: Tree = None) -> Any:
        updates, state = inner.update(grads, cast(state, jnp.float32), params)
        return updates, cast(state, dtype)

    return optax.GradientTransformation(lambda params: cast(inner.init(params), dtype), update)


def is_floating(a: Any) -> bool:
    return bool(jnp.issubdtype(a.dtype, jnp.floating))


def sharding_of(mesh: Mesh, leaf: Any, axis: str, shard: bool) -> NamedSharding:
    """Return a sharding that splits the last dimension that the mesh axis divides; replicated without one."""
    size = mesh.shape[axis]
    spec: list[str | None] = [None] * leaf.ndim
    if shard:
        dims = [d for d in range(leaf.ndim) if leaf.shape[d] % size == 0 and leaf.shape[d] > 1]
        if dims:
            spec[max(dims, key=lambda d: leaf.shape[d])] = axis
    return NamedSharding(mesh, PartitionSpec(*spec))


def training_case(
    model: Model, optimizer: Any, devices: list[Any], *, donate: bool = True, compute: Any = None,
    shard_params: bool = False, shard_optimizer: bool = False, returns: str = "", unused: bool = False,
) -> Case:  # fmt: skip
    """Return a training step: step(state, batch) -> (state, loss), data parallel over the devices."""
    mesh = Mesh(np.array(devices), ("data",))

    def cast(tree: Tree) -> Tree:
        return tree if compute is None else jax.tree.map(lambda a: a.astype(compute) if is_floating(a) else a, tree)

    def step(state: Tree, batch: Tree) -> Any:
        value, grads = jax.value_and_grad(lambda p: model.loss(cast(p), cast(batch)))(state["params"])
        if returns == "gradients":
            return value, grads
        updates, opt = optimizer.update(grads, state["opt"], state["params"])
        new = {"params": optax.apply_updates(state["params"], updates), "opt": opt}
        return (new, value, grads) if returns == "both" else (new, value)

    def initial() -> Tree:
        params = model.initial()
        return {"params": params} | ({} if returns == "gradients" else {"opt": optimizer.init(params)})

    shapes = jax.eval_shape(initial)
    split = {"params": shard_params, "opt": shard_optimizer}
    shardings = {
        part: jax.tree.map(lambda a, part=part: sharding_of(mesh, a, "data", split[part]), shapes[part])
        for part in shapes
    }
    state = jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), shapes, shardings)
    rows = NamedSharding(mesh, PartitionSpec("data"))
    batch = {k: jax.ShapeDtypeStruct(shape, dtype, sharding=rows) for k, (shape, dtype) in model.batch.items()}
    whole = NamedSharding(mesh, PartitionSpec())
    out = {"": (shardings, whole), "both": (shardings, whole, shardings["params"]),
           "gradients": (whole, shardings["params"])}[returns]  # fmt: skip
    return Case(
        jax.jit(step, donate_argnums=(0,) if donate else (), out_shardings=out),
        (state, batch),
        ({"params": "parameter"} | ({} if returns == "gradients" else {"opt": "optimizer state"}), "input"),
    )
