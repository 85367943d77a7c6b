"""The dependencies of a test, found by following its code: shared profiles, JAX, other processes.

Code is followed through global names, into the functions and constants of the tests' own modules.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import DATA, TESTS

SLOW_MODULES = frozenset({"jax", "subprocess", "tensorboard", "torch", "xprof"})


def needs_shared_data(item: pytest.Function) -> bool:
    """Return whether a test has a parameter below DATA, or reaches DATA.

    A test whose parameters are files is judged by its own file, so that the demo's profiles do not count.
    """
    files = [path for value in _parameters(item) for path in _paths(value)]
    if files:
        return any(map(_is_below_data, files))
    return any(_is_below_data(path) for value in _reachable(item) for path in _paths(value))


def reaches_slow_modules(item: pytest.Function) -> bool:
    """Return whether a test imports JAX, PyTorch or a host, or starts a process: each costs seconds."""
    return any(
        value.__name__.partition(".")[0] in SLOW_MODULES
        if isinstance(value, types.ModuleType)
        else isinstance(value, str) and value.partition(".")[0] in SLOW_MODULES
        for value in _reachable(item)
    )


def _parameters(item: pytest.Function) -> list[object]:
    return list(item.callspec.params.values()) if hasattr(item, "callspec") else []


def _paths(value: object) -> list[Path]:
    if isinstance(value, list | tuple):
        return [path for part in value for path in _paths(part)]
    value = getattr(value, "path", value)
    return [value] if isinstance(value, Path) else []


def _is_below_data(path: Path) -> bool:
    return DATA in (path, *path.parents)


def _reachable(item: pytest.Function) -> Iterator[object]:
    """Yield the values of all global names, and the names of all modules, that a test and its fixtures use."""
    fixtures = [found.func for definitions in item._fixtureinfo.name2fixturedefs.values() for found in definitions]
    pending: list[object] = [item.function, *fixtures]
    seen = set[int]()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        function = _function(value)
        if function is None or TESTS not in Path(function.__code__.co_filename).parents:
            continue
        pending += [function.__globals__.get(name, name) for name in _names(function.__code__)]


def _function(value: object) -> types.FunctionType | None:
    """Return the function beneath decorators such as functools.cache."""
    value = getattr(value, "__wrapped__", value)
    return value if isinstance(value, types.FunctionType) else None


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the global and attribute names in a function and in the functions and comprehensions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
