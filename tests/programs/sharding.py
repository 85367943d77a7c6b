"""Shapes of arguments with their shardings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from programs.case import Tree


def replicated(devices: Sequence[Any]) -> NamedSharding:
    """Return a sharding that keeps a copy on each device."""
    return NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec())


def split_batch(devices: Sequence[Any]) -> Callable[..., Any]:
    """Return a function from a shape and a dtype to an argument whose first dimension is split between the devices."""
    sharding = NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec("data"))
    return lambda shape, dtype=jnp.float32: jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def shapes(initial: Callable[[], Tree], sharding: Any) -> Tree:
    """Return the shapes of what `initial` returns, without computing it; `sharding` is for all or a tree of them."""
    tree = jax.eval_shape(initial)
    if isinstance(sharding, NamedSharding):
        sharding = jax.tree.map(lambda _: sharding, tree)
    return jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), tree, sharding)


def grid(devices: Sequence[Any], model: int = 2) -> Mesh:
    """Return a mesh of two axes: data, and `model` devices for each replica of the model."""
    return Mesh(np.array(devices).reshape(-1, model), ("data", "model"))


def sharded(mesh: Mesh, shape: Sequence[int], dtype: Any, *axes: Any) -> jax.ShapeDtypeStruct:
    """Return an argument whose dimensions are split along these axes of the mesh."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=NamedSharding(mesh, PartitionSpec(*axes)))


def fully_sharded(initial: Callable[[], Tree], mesh: Mesh, axis: str = "data") -> Tree:
    """Return the shapes of what `initial` returns, each split along its largest dimension that divides (FSDP)."""
    size = mesh.shape[axis]

    def place(a: Any) -> jax.ShapeDtypeStruct:
        dimensions = [d for d, n in enumerate(a.shape) if n % size == 0 and n >= 8 * size]
        largest = max(dimensions, key=lambda d: a.shape[d], default=None)
        return sharded(mesh, a.shape, a.dtype, *(axis if d == largest else None for d in range(len(a.shape))))

    return jax.tree.map(place, jax.eval_shape(initial))


def sharded_by_name(initial: Callable[[], Tree], mesh: Mesh, rules: dict[str, tuple[Any, ...]]) -> Tree:
    """Return the shapes of what `initial` returns, split by the rule of the last name in each one's path.

    A rule is for the last dimensions of an array: the first one of stacked layers is not split.
    """

    def place(path: Any, a: Any) -> jax.ShapeDtypeStruct:
        names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
        rule = rules.get(names[-1], ()) if names else ()
        axes = (*(None for _ in range(len(a.shape) - len(rule))), *rule) if len(a.shape) >= len(rule) else ()
        return sharded(mesh, a.shape, a.dtype, *axes)

    return jax.tree_util.tree_map_with_path(place, jax.eval_shape(initial))
