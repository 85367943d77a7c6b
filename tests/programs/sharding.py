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
