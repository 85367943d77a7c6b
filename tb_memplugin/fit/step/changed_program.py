"""A jitted function with changes, lowered as if its author had made them.

A traced function contains the arguments of `jax.jit`, such as donated arguments and shardings. They are changed there,
so JAX itself derives the rest, such as which result reuses which argument. The user's code runs only once.

Arguments are split along an axis of their mesh in the traced function. Where the axes of the mesh are explicit, JAX
infers types with shardings, so the shapes are split and the function is traced again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Changes, is_inside

REMEDY = "the arrays need NamedShardings of a mesh with it"


def has_explicit_axes(traced: Any) -> bool:
    """Return whether an argument is on a mesh with an explicit axis."""
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
    found = False
    for number in (number for number, is_chosen in enumerate(chosen) if is_chosen):
        leaf = leaves[number]
        if after := _split(getattr(leaf, "sharding", None), getattr(leaf, "shape", ()), axis):
            leaves[number], found = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=after), True
    if not found:
        raise InputError("Nothing to split along the axis", axis, REMEDY)
    positional, keywords = jax.tree.unflatten(tree, leaves)
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
            form = None if meta.format is None else type(meta.format)(meta.format.layout, after)
            metas[number] = meta.replace(sharding=after, format=form)
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


def _is_named(sharding: Any) -> bool:
    return hasattr(sharding, "spec") and hasattr(sharding, "mesh")


def _split(sharding: Any, shape: Sequence[int], axis: str) -> Any:
    """Return the sharding with one more dimension split along the axis; None if no dimension can be split."""
    from jax.sharding import NamedSharding, PartitionSpec

    if not _is_named(sharding):
        return None
    used = {name for part in sharding.spec for name in (part if isinstance(part, tuple) else (part,))}
    free = {name: size for name, size in sharding.mesh.shape.items() if name not in used}
    spec = [*sharding.spec, *[None] * len(shape)][: len(shape)]
    found = place_to_split(shape, [part is None for part in spec], free, axis)
    if found is None:
        return None
    spec[found[0]] = found[1]
    return NamedSharding(sharding.mesh, PartitionSpec(*spec), memory_kind=sharding.memory_kind)


def place_to_split(
    shape: Sequence[int], is_whole: Sequence[bool], free: Mapping[str, int], axis: str
) -> tuple[int, str] | None:
    """Return the largest dimension that is whole and that an axis of the mesh divides, and the axis; None without one.

    `free` are the sizes of the axes along which the array is not split yet. `axis` is a name, or a size.
    """
    name = axis if axis in free else next((name for name, size in free.items() if str(size) == axis), None)
    if name is None:
        return None
    whole = [n for n, extent in enumerate(shape) if is_whole[n] and extent and extent % free[name] == 0]
    return (max(whole, key=lambda n: shape[n]), name) if whole else None


def lower_changed(function: Any, arguments: Sequence[Any], named: Mapping[str, Any], changes: Changes) -> Any:
    """Lower a jitted function for these arguments, with changes. InputError where a change is not possible."""
    if not changes.of_function:
        return function.lower(*arguments, **named)
    if type(function).__name__ == "PjitFunction":
        return _lower_jitted(function, arguments, named, changes)
    with remember_traced() as found:  # wrappers of jax.jit, such as Flax's and Equinox's
        lowered = function.lower(*arguments, **named)
    return lower_again(lowered, found, changes)


def _lower_jitted(function: Any, arguments: Sequence[Any], named: Mapping[str, Any], changes: Changes) -> Any:
    traced = function.trace(*arguments, **named)
    if not (changes.sharded and has_explicit_axes(traced)):
        return lower_traced(traced, changes)
    for wanted in changes.sharded:
        arguments, named = split_shapes(arguments, named, wanted.axis, _chosen(_paths(traced), wanted.arguments))
    return lower_traced(function.trace(*arguments, **named), replace(changes, sharded=[]))


def lower_again(lowered: Any, found: Sequence[tuple[Any, Any]], changes: Changes) -> Any:
    """Lower a lowered function again, with changes. `found` is the list that `remember_traced` yields."""
    lowered = getattr(lowered, "lowered", lowered)  # in wrappers of Flax and Equinox
    traced = next((traced for traced, result in reversed(found) if result is lowered), None)
    if traced is None:
        raise InputError("Not jitted by jax.jit", type(lowered).__name__, "return jax.jit(f), shapes")
    return lower_traced(traced, changes)


def lower_traced(traced: Any, changes: Changes) -> Any:
    """Lower a traced function with changes."""
    change(traced, changes)
    traced._lojax = None  # cached from before the changes
    return traced.lower()


def change(traced: Any, changes: Changes) -> None:
    """Change the parameters of a traced function. InputError where a change is not possible."""
    paths = _paths(traced)
    for name in [*changes.donated, *(name for wanted in changes.sharded for name in wanted.arguments)]:
        if not any(is_inside(path, name) for path in paths):
            raise InputError("No such argument", name, f"the function has {', '.join(paths[:8])}")
    donated = zip(traced._params["donated_invars"], _chosen(paths, changes.donated), strict=True)
    traced._params = {**traced._params, "donated_invars": tuple(before or now for before, now in donated)}
    if changes.sharded and has_explicit_axes(traced):
        raise InputError("The mesh has explicit axes", "shardings", "return jax.jit(f), shapes: it is traced again")
    for wanted in changes.sharded:
        shard(traced, wanted.axis, _chosen(paths, wanted.arguments))
    if changes.drops_unused:
        traced._params = {**traced._params, "keep_unused": False}


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Let an attribute of a module or a class have another value meanwhile."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def remember_traced() -> Iterator[list[tuple[Any, Any]]]:
    """Yield a list that gets a pair for each function that is lowered meanwhile: traced, and lowered."""
    import jax

    found: list[tuple[Any, Any]] = []
    lower = jax.stages.Traced.lower

    def remember(traced: Any, *positional: Any, **named: Any) -> Any:
        result = lower(traced, *positional, **named)
        found.append((traced, result))
        return result

    with replaced(jax.stages.Traced, "lower", remember):
        yield found


def _paths(traced: Any) -> tuple[str, ...]:
    """Return the paths of all arrays among the arguments, such as `params['w']`."""
    jaxpr = traced.jaxpr
    count = len(traced._params["donated_invars"])
    paths: tuple[str, ...] = getattr(jaxpr, "jaxpr", jaxpr).debug_info.safe_arg_names(count)
    return paths


def _chosen(paths: Sequence[str], names: Sequence[str]) -> list[bool]:
    return [any(is_inside(path, name) for name in names) for path in paths]
