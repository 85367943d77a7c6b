"""A jitted function with changes: lowered as JAX lowers the function whose author has made them.

What `jax.jit` was given (donated arguments, shardings) is part of a traced function. Changed there, JAX itself decides
what follows, such as which result reuses which argument. The user's code runs once, as for the unchanged program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.changes.changes import Changes, is_inside
from tb_memplugin.fit.changes.split_arguments import has_explicit_axes, shard, split_shapes


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
    """Lower with changes what is lowered already. `found` are the traced functions since, as of `remember_traced`."""
    lowered = getattr(lowered, "lowered", lowered)  # in wrappers of Flax and Equinox
    traced = next((traced for traced, result in reversed(found) if result is lowered), None)
    if traced is None:
        raise InputError("Not jitted by jax.jit", type(lowered).__name__, "return jax.jit(f), shapes")
    return lower_traced(traced, changes)


def lower_traced(traced: Any, changes: Changes) -> Any:
    """Lower a traced function with changes."""
    paths = _paths(traced)
    _require_all(paths, changes)
    donate(traced, _chosen(paths, changes.donated))
    if changes.sharded and has_explicit_axes(traced):
        raise InputError("The mesh has explicit axes", "shardings", "return jax.jit(f), shapes: it is traced again")
    for wanted in changes.sharded:
        shard(traced, wanted.axis, _chosen(paths, wanted.arguments))
    if changes.drops_unused:
        traced._params = {**traced._params, "keep_unused": False}
    traced._lojax = None  # of before the changes
    return traced.lower()


@contextmanager
def remember_traced() -> Iterator[list[tuple[Any, Any]]]:
    """Remember the functions that are lowered, traced and lowered."""
    import jax

    found: list[tuple[Any, Any]] = []
    lower = jax.stages.Traced.lower

    def remember(traced: Any, *positional: Any, **named: Any) -> Any:
        result = lower(traced, *positional, **named)
        found.append((traced, result))
        return result

    jax.stages.Traced.lower = remember  # type: ignore
    try:
        yield found
    finally:
        jax.stages.Traced.lower = lower  # type: ignore


def _paths(traced: Any) -> tuple[str, ...]:
    """Return the paths of all arrays among the arguments, such as `params['w']`."""
    jaxpr = traced.jaxpr
    count = len(traced._params["donated_invars"])
    paths: tuple[str, ...] = getattr(jaxpr, "jaxpr", jaxpr).debug_info.safe_arg_names(count)
    return paths


def _chosen(paths: Sequence[str], names: Sequence[str]) -> list[bool]:
    return [any(is_inside(path, name) for name in names) for path in paths]


def _require_all(paths: Sequence[str], changes: Changes) -> None:
    names = [*changes.donated, *(name for wanted in changes.sharded for name in wanted.arguments)]
    for name in names:
        if not any(is_inside(path, name) for path in paths):
            raise InputError("No such argument", name, f"the function has {', '.join(paths[:8])}")


def donate(traced: Any, chosen: Sequence[bool]) -> None:
    """Donate arrays, besides those that are."""
    donated = traced._params["donated_invars"]
    both = tuple(before or now for before, now in zip(donated, chosen, strict=True))
    traced._params = {**traced._params, "donated_invars": both}
