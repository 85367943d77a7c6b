"""JAX and PyTorch as modules that are imported when something of them is used first.

A job that has begun may be unable to import: each module is a file, and there may be no descriptor or memory left.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["jax", "jaxlib", "torch"]


class _Module:
    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


if TYPE_CHECKING:
    import jax
    import jaxlib
    import torch
else:
    jax, jaxlib, torch = map(_Module, ("jax", "jaxlib", "torch"))
