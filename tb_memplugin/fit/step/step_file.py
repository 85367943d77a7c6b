"""The user's function, as `fit_gpt.py:step`, `package.module:step` or a Python object, for another process to find."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import ScriptCall
from tb_memplugin.model.fit import dumped_files

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


def _parsed(text: str) -> tuple[ast.Module, str]:
    """Return the syntax tree of a step's file, and the name of the function. InputError where it is missing."""
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise InputError("No function named", text, "write FILE.py:FUNCTION")
    path = Path(place) if place.endswith(".py") else _file_of_module(place)
    if not path.is_file():
        raise InputError("No such file", str(path), f"write it: {EXAMPLE}")
    try:
        return ast.parse(path.read_bytes()), name
    except SyntaxError as error:
        raise InputError(f"Line {error.lineno} is no Python: {error.msg}", str(path), "correct it") from None


def _is_of_torch(text: str) -> bool:
    """Return whether a step's file imports torch and not jax, and the step has no argument `devices`, as one of JAX."""
    tree, name = _parsed(text)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            names |= {"jax" for argument in node.args.args if argument.arg == "devices"}
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return "torch" in names and "jax" not in names


def defaults_of(text: str) -> dict[str, Any]:
    """Return the default values of the function's knobs, without running the file; InputError where it is missing."""
    tree, name = _parsed(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        return {}  # such as a name that the file imports: the child reports an error
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
    sys.path.insert(0, str(path.resolve().parent))  # it may import modules beside it, as when Python runs it
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class FoundStep:
    """A step as FILE.py:FUNCTION or MODULE:FUNCTION, or as a pickle if it is not a function of a file."""

    text: str
    pickled: bytes = b""
    of_torch: bool = False  # traced without a GPU, in place of compiled
    defaults: Mapping[str, Any] = field(default_factory=dict)
    script: ScriptCall | None = None  # the step is that of a script, which runs as it is


def find_step(step: str | Callable[..., Any]) -> FoundStep:
    """Return a step in a form that another process can load. InputError where there is none."""
    if isinstance(step, str):
        if dumped_files(step):
            return FoundStep(step)
        return FoundStep(step, of_torch=_is_of_torch(step), defaults=defaults_of(step))
    if not callable(step):
        raise InputError("Not a step", repr(step)[:100], f"write it as in: {EXAMPLE}")
    name, module = getattr(step, "__qualname__", ""), sys.modules.get(getattr(step, "__module__", None) or "")
    is_global = name.isidentifier() and getattr(module, name, None) is step
    file = getattr(module, "__file__", None)
    if is_global and module is not None and module.__name__ != "__main__":
        text = f"{module.__name__}:{name}"
        return FoundStep(text, of_torch=_is_of_torch(text), defaults=_defaults(step))
    if is_global and file and file.endswith(".py") and os.path.isfile(file):
        text = f"{Path(file).resolve()}:{name}"
        return FoundStep(text, of_torch=_is_of_torch(text), defaults=_defaults(step))
    text, pickled = f"__main__:{re.sub(r'[^A-Za-z0-9_]', '', name) or 'step'}", _pickled(step)
    return FoundStep(text, pickled, b"torch" in pickled and b"jax" not in pickled, _defaults(step))


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
