"""Everything in a recording or a listing, as plain values that can be compared."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import LazyText, Strings


def contents(value: Any) -> Any:
    """Return the value with tables as dictionaries, and arrays as lists; functions and caches are left out."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes() if value.dtype != object else value.tolist()
    if isinstance(value, Enum) or value is None or isinstance(value, (str, bytes, int, float)):
        return repr(value)
    if is_dataclass(value):
        names = [field.name for field in fields(Recording if isinstance(value, Recording) else value)]
        return type(value).__name__, {name: contents(getattr(value, name)) for name in names if name != "memo"}
    if isinstance(value, dict):
        return {repr(key): contents(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, Strings, LazyText)):
        return [contents(value[row]) for row in range(len(value))]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    return type(value).__name__
