"""The memory that objects hold, measured instead of declared, so that nothing new in a recording escapes the caches."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

# Shared by the whole process. What enumerations, classes and modules refer to belongs to no recording.
SHARED = (type, ModuleType, Enum, BuiltinFunctionType)


def held_bytes(roots: Iterable[object]) -> int:
    """Return the bytes of all objects that can be reached from the roots, each counted once.

    Arrays count with the memory that they are views of: one row of a table keeps the whole table. Objects of compiled
    modules count with their `nbytes`, where they have it.
    """
    waiting: list[Any] = list(roots)
    seen: set[int] = set()
    total = 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, SHARED):
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        waiting.extend(_referents(value))
        if not isinstance(value, (np.ndarray, np.generic, memoryview)):
            total += _extra_bytes(value)
    return total


def _referents(value: Any) -> Iterable[Any]:
    if isinstance(value, (bytes, str, int, float)):
        return ()
    if isinstance(value, np.ndarray):
        return () if value.base is None else (value.base,)
    if isinstance(value, memoryview):
        return (value.obj,)
    if isinstance(value, FunctionType):  # not its globals
        return (value.__closure__, value.__defaults__)
    return gc.get_referents(value)


def _extra_bytes(value: Any) -> int:
    """Return the bytes that `sys.getsizeof` leaves out: those of C++ containers, and of mapped files."""
    nbytes = getattr(value, "nbytes", 0)
    return nbytes if type(nbytes) is int else 0
