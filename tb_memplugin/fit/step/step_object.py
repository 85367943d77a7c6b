"""A step given as a Python function: how another process finds it again."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.step.step_file import EXAMPLE, defaults_of


@dataclass(frozen=True)
class FoundStep:
    """A step as FILE.py:FUNCTION or MODULE:FUNCTION; as a pickle, where it is not a function of a file."""

    text: str
    pickled: bytes = b""
    defaults: Mapping[str, Any] = field(default_factory=dict)


def find_step(step: str | Callable[..., Any]) -> FoundStep:
    """Return how another process finds a step. InputError where it cannot."""
    if isinstance(step, str):
        return FoundStep(step, defaults=defaults_of(step))
    if not callable(step):
        raise InputError("Not a step", repr(step)[:100], f"write it as in: {EXAMPLE}")
    name, module = getattr(step, "__qualname__", ""), sys.modules.get(getattr(step, "__module__", None) or "")
    is_global = name.isidentifier() and getattr(module, name, None) is step
    file = getattr(module, "__file__", None)
    if is_global and module is not None and module.__name__ != "__main__":
        return FoundStep(f"{module.__name__}:{name}", defaults=_defaults(step))
    if is_global and file and file.endswith(".py") and os.path.isfile(file):
        return FoundStep(f"{Path(file).resolve()}:{name}", defaults=_defaults(step))
    return FoundStep(f"__main__:{re.sub(r'[^A-Za-z0-9_]', '', name) or 'step'}", _pickled(step), _defaults(step))


def _pickled(step: Callable[..., Any]) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        text = "run `pip install cloudpickle`, or write the function to a file at its top level"
        raise InputError("A function that is not in a file needs cloudpickle", repr(step)[:100], text) from None
    try:
        content: bytes = cloudpickle.dumps(step)
    except Exception as error:
        text = "write it to a file, at its top level, and create there what it needs"
        raise InputError(f"The function cannot be pickled ({error})", repr(step)[:100], text) from None
    return content


def _defaults(step: Callable[..., Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(step).parameters.values()
    except (ValueError, TypeError):
        return {}
    return {one.name: one.default for one in parameters if one.default is not one.empty}
