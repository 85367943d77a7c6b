"""Arguments split along an axis of their mesh: in a traced function, or among its shapes before it is traced.

Where the axes of the mesh are explicit, shardings are part of the types that JAX infers, so that it must trace again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tb_memplugin.errors import InputError

REMEDY = "the arrays need NamedShardings of a mesh with it"


def has_explicit_axes(traced: Any) -> bool:
    """Return whether an argument is on a mesh with an axis that is explicit."""
    shardings = [*traced._params["in_shardings"], *(meta.sharding for meta in traced._meta_tys_flat)]
    types = {kind for one in shardings if _is_named(one) for kind in getattr(one.mesh, "axis_types", None) or ()}
    return "Explicit" in {getattr(kind, "name", "") for kind in types}


def split_shapes(
    arguments: Sequence[Any], named: Mapping[str, Any], axis: str, chosen: Sequence[bool]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments with the chosen arrays split along the axis."""
    import jax

    leaves, tree = jax.tree.flatten((tuple(arguments), dict(named)))
    if len(leaves) != len(chosen):
        raise InputError("The function has static arguments", axis, "close over them in the jitted function")
    split, found = list[Any](), False
    for leaf, is_chosen in zip(leaves, chosen, strict=True):
        after = _split(getattr(leaf, "sharding", None), getattr(leaf, "shape", ()), axis) if is_chosen else None
        found |= after is not None
        split.append(leaf if after is None else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=after))
    if not found:
        raise InputError("Nothing to split along the axis", axis, REMEDY)
    positional, keywords = jax.tree.unflatten(tree, split)
    return positional, keywords


def shard(traced: Any, axis: str, chosen: Sequence[bool]) -> None:
    """Split each array along the axis, in the largest dimension that is whole and that the axis divides.

    Results with the same shape, dtype and sharding, such as the updated parameters, are split as well.
    """
    params, metas = traced._params, list(traced._meta_tys_flat)
    given, returned = list(params["in_shardings"]), list(params["out_shardings"])
    results, waiting, found = traced.jaxpr.out_avals, set(range(len(returned))), False
    for number in (number for number, is_chosen in enumerate(chosen) if is_chosen):
        meta = metas[number]
        before = given[number] if _is_named(given[number]) else meta.sharding
        after = _split(before, meta.shape, axis)
        if after is None:
            continue
        found = True
        if _is_named(given[number]):
            given[number] = after
        if _is_named(meta.sharding):
            metas[number] = meta.replace(sharding=after, format=_with_sharding(meta.format, after))
        for result in sorted(waiting):
            same = results[result].shape == meta.aval.shape and results[result].dtype == meta.aval.dtype
            if same and _is_named(returned[result]) and returned[result].spec == before.spec:
                returned[result] = after
                waiting.discard(result)
                break
    if not found:
        raise InputError("Nothing to split along the axis", axis, REMEDY)
    traced._meta_tys_flat = metas
    traced._params = {**params, "in_shardings": tuple(given), "out_shardings": tuple(returned)}


def _with_sharding(form: Any, sharding: Any) -> Any:
    return None if form is None else type(form)(form.layout, sharding)


def _is_named(sharding: Any) -> bool:
    return hasattr(sharding, "spec") and hasattr(sharding, "mesh")


def _split(sharding: Any, shape: Sequence[int], axis: str) -> Any:
    """Return the sharding with one dimension split further; None if no dimension can be."""
    from jax.sharding import NamedSharding, PartitionSpec

    if not _is_named(sharding):
        return None
    free = {name: size for name, size in sharding.mesh.shape.items() if name not in _axes(sharding.spec)}
    name = axis if axis in free else next((name for name, size in free.items() if str(size) == axis), None)
    if name is None:
        return None
    size, spec = free[name], [*sharding.spec, *[None] * len(shape)][: len(shape)]
    whole = [n for n, extent in enumerate(shape) if spec[n] is None and extent and extent % size == 0]
    if not whole:
        return None
    spec[max(whole, key=lambda n: shape[n])] = name
    return NamedSharding(sharding.mesh, PartitionSpec(*spec), memory_kind=sharding.memory_kind)


def _axes(spec: Sequence[Any]) -> set[str]:
    return {name for part in spec for name in (part if isinstance(part, tuple) else (part,)) if name is not None}
