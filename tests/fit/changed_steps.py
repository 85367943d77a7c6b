"""Steps to change: each has a knob `by_hand` with the changes that their author would make."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import checkpoint, value_and_grad
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, NamedSharding, PartitionSpec

WIDTH, LAYERS = 512, 3
MOMENTUM = 0.9
Tree = Any


def loss(params: Tree, x: Any) -> Any:
    for layer in params.values():
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean(x**2)


def update(params: Tree, momentum: Tree, x: Any) -> Any:
    value, grads = jax.value_and_grad(loss)(params, x)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value


def params_of(place: Any) -> Tree:
    layer = {"w": place((WIDTH, 2 * WIDTH)), "b": place((2 * WIDTH,))}
    back = {"w": place((2 * WIDTH, WIDTH)), "b": place((WIDTH,))}
    return {f"layer_{i}": back if i % 2 else layer for i in range(2 * LAYERS)}


def shapes(devices: list[Any], split: bool, batch: int) -> tuple[Tree, Any]:
    """Return the parameters, whole or split along their largest dimension, and the split batch."""
    mesh = Mesh(np.array(devices), ("data",))

    def place(shape: tuple[int, ...]) -> Any:
        at = shape.index(max(shape)) if split else -1
        spec = PartitionSpec(*("data" if n == at else None for n in range(len(shape)))) if split else PartitionSpec()
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    batch_sharding = NamedSharding(mesh, PartitionSpec("data"))
    return params_of(place), jax.ShapeDtypeStruct((batch * len(devices), WIDTH), jnp.float32, sharding=batch_sharding)


def by_shapes(devices: list[Any], batch: int = 64, donated: bool = False, split: bool = False) -> Any:
    """Shardings come with the shapes."""
    params, x = shapes(devices, split, batch)
    return jax.jit(update, donate_argnums=(0, 1) if donated else ()), (params, params, x)


def by_jit(devices: list[Any], batch: int = 64, donated: bool = False, split: bool = False) -> Any:
    """Shardings come with jax.jit, of arguments and of results."""
    params, x = shapes(devices, split, batch)
    placed = jax.tree.map(lambda a: a.sharding, (params, params, x))
    bare = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (params, params, x))
    one = NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec())
    donate = (0, 1) if donated else ()
    return jax.jit(update, in_shardings=placed, out_shardings=(*placed[:2], one), donate_argnums=donate), bare


def lowered(devices: list[Any], **knobs: Any) -> Any:
    """The step is lowered already."""
    function, arguments = by_jit(devices, **knobs)
    return function.lower(*arguments)


def with_unused(devices: list[Any], batch: int = 64, keep: bool = True) -> Any:
    """An argument is never read."""
    params, x = shapes(devices, False, batch)
    return jax.jit(lambda params, unused, x: loss(params, x), keep_unused=keep), (params, params, x)


def wrapped(devices: list[Any], batch: int = 64, donated: bool = False) -> Any:
    """Flax wraps jax.jit."""
    from flax import nnx

    params, x = shapes(devices, False, batch)
    return nnx.jit(update, donate_argnums=(0, 1) if donated else ()), (params, params, x)


def with_microbatches(devices: list[Any], batch: int = 64, microbatches: int = 1, donated: bool = False) -> Any:
    """Gradients are accumulated, if a knob says so."""
    params, x = shapes(devices, False, batch)

    def accumulated(params: Tree, momentum: Tree, x: Any) -> Any:
        parts = jnp.moveaxis(x.reshape(-1, microbatches, WIDTH), 1, 0)
        zeros = jax.tree.map(jnp.zeros_like, params)

        def add(total: Tree, part: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, part)), None

        grads, _ = jax.lax.scan(add, zeros, parts)
        momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g / microbatches, momentum, grads)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum

    function = accumulated if microbatches > 1 else update
    return jax.jit(function, donate_argnums=(0, 1) if donated else ()), (params, params, x)


def explicit(devices: list[Any], batch: int = 64, donated: bool = False, split: bool = False) -> Any:
    """The axes of the mesh are explicit: shardings are part of types."""
    mesh = Mesh(np.array(devices), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
    weight = NamedSharding(mesh, PartitionSpec(None, "data" if split else None))
    params = jax.ShapeDtypeStruct((WIDTH, 2 * WIDTH), jnp.float32, sharding=weight)
    rows = NamedSharding(mesh, PartitionSpec("data", None))
    x = jax.ShapeDtypeStruct((batch * len(devices), 2 * WIDTH), jnp.float32, sharding=rows)

    def scaled(params: Any, x: Any) -> Any:
        return 2 * params, jnp.mean(x**2)

    return jax.jit(scaled, donate_argnums=(0,) if donated else ()), (params, x)


def scanned(devices: list[Any], batch: int = 64, remat: str = "none") -> Any:
    """Layers are a scan, whose body `remat` recomputes."""
    params, x = shapes(devices, False, batch)
    weights = jax.ShapeDtypeStruct((LAYERS, WIDTH, WIDTH), jnp.float32, sharding=params["layer_0"]["b"].sharding)

    def layer(x: Any, weight: Any) -> tuple[Any, None]:
        return jnp.tanh(jnp.sin(x) @ weight), None

    body = layer if remat == "none" else jax.checkpoint(layer, policy=KEPT[remat], prevent_cse=False)

    def loss(weights: Any, x: Any) -> Any:
        return jax.lax.scan(body, x, weights)[0].sum()

    return jax.jit(jax.value_and_grad(loss)), (weights, x)


KEPT = {
    "none": jax.checkpoint_policies.everything_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "hidden": jax.checkpoint_policies.save_only_these_names("hidden"),
    "host": jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=(),
        names_which_can_be_offloaded=("hidden", "out"),
        offload_src="device",
        offload_dst="pinned_host",
    ),
}


def layer(x: Any, weight: Any) -> tuple[Any, None]:
    """Apply a layer, whose arrays have names."""
    hidden = checkpoint_name(jnp.sin(x) @ weight, "hidden")
    return checkpoint_name(jnp.tanh(hidden) @ weight, "out"), None


def of_layers(devices: list[Any], batch: int, loss: Any) -> Any:
    """Return a step with the gradient of a loss of stacked weights."""
    params, x = shapes(devices, False, batch)
    weights = jax.ShapeDtypeStruct((LAYERS, WIDTH, WIDTH), jnp.float32, sharding=params["layer_0"]["b"].sharding)
    return jax.jit(value_and_grad(loss)), (weights, x)


def scan_of(body: Any) -> Any:
    return lambda weights, x: jax.lax.scan(body, x, weights)[0].sum()


def loop_of(body: Any) -> Any:
    def loss(weights: Any, x: Any) -> Any:
        for number in range(LAYERS):
            x, _ = body(x, weights[number])
        return x.sum()

    return loss


def named_scan(devices: list[Any], batch: int = 64, kept: str = "") -> Any:
    """Layers are a scan without a policy."""
    return of_layers(
        devices, batch, scan_of(checkpoint(layer, policy=KEPT[kept], prevent_cse=False) if kept else layer)
    )


def checkpointed_scan(devices: list[Any], batch: int = 64, kept: str = "full") -> Any:
    """Layers are a scan with a policy."""
    return of_layers(devices, batch, scan_of(checkpoint(layer, policy=KEPT[kept])))


def checkpointed_loop(devices: list[Any], batch: int = 64, kept: str = "full") -> Any:
    """Layers are a loop with a policy for each."""
    return of_layers(devices, batch, loop_of(checkpoint(layer, policy=KEPT[kept])))


def named_loop(devices: list[Any], batch: int = 64, kept: str = "") -> Any:
    """Layers are a loop without a policy; by hand, the whole loss gets one."""
    whole = loop_of(layer)

    def loss(weights: Any, x: Any) -> Any:
        return checkpoint(lambda: whole(weights, x), policy=KEPT[kept])() if kept else whole(weights, x)

    return of_layers(devices, batch, loss)
