"""The user's function: `fit_gpt.py:step`, or `package.module:step`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tb_memplugin.errors import InputError

EXAMPLE = "def step(devices, batch=8): ... return jax.jit(f), (state_shapes, batch_shapes)"


def load_step(text: str) -> Callable[..., Any]:
    """Import the file or module, and return its function. InputError where there is none."""
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise InputError("No function named", text, "write FILE.py:FUNCTION")
    module = _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    step = getattr(module, name, None)
    if not callable(step):
        names = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise InputError("No such function", text, f"{place} has {', '.join(names) or 'none'}")
    return step  # type: ignore[no-any-return]


def defaults_of(text: str) -> dict[str, Any]:
    """Return the default values of the function's knobs, without running the file; InputError where it is missing."""
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise InputError("No function named", text, "write FILE.py:FUNCTION")
    path = Path(place) if place.endswith(".py") else _file_of_module(place)
    if not path.is_file():
        raise InputError("No such file", str(path), f"write it: {EXAMPLE}")
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise InputError(f"Line {error.lineno} is no Python: {error.msg}", str(path), "correct it") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        return {}  # such as a name that the file imports: the child will tell
    found = functions[name].args
    positional = [*found.posonlyargs, *found.args]
    pairs = [
        *zip(reversed(positional), reversed(found.defaults), strict=False),
        *zip(found.kwonlyargs, found.kw_defaults, strict=True),
    ]
    return {argument.arg: _literal(value) for argument, value in pairs if value is not None}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _file_of_module(name: str) -> Path:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise InputError("No such module", name, "write FILE.py:FUNCTION, or install the module")
    return Path(spec.origin)


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError("No such file", str(path), f"write it: {EXAMPLE}")
    sys.path.insert(0, str(path.resolve().parent))  # it may import what lies beside it, as when Python runs it
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
