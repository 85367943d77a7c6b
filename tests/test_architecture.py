"""The import order of packages: hosts -> questions -> analysis -> model <- readers <- native, protos."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tb_memplugin"

# The imports that each package may make, besides its own modules. A package that is missing here may import none.
ALLOWED: dict[str, set[str]] = {
    "cache_folder": {"sizes"},
    "errors": set(),
    "free_memory": {"errors", "sizes"},
    "open_below": set(),
    "model": set(),
    "sizes": {"errors"},
    "native": set(),
    "numbered_names": set(),
    "protos": set(),
    "regex": {"errors"},
    "schemas": {"errors"},
    "formats": {"model"},
    "readers": {"errors", "formats", "free_memory", "model", "native", "numbered_names", "protos", "sizes"},
    "analysis": {"errors", "native", "model", "numbered_names", "regex", "sizes"},
    "targets": {"errors", "model"},
    "questions": {"analysis", "errors", "model", "numbered_names", "regex", "sizes", "targets"},
    "logdir": {"errors", "formats", "free_memory", "model", "numbered_names", "open_below", "sizes"},
    "catalog": {"analysis", "errors", "formats", "free_memory", "logdir", "readers", "model", "sizes"},
    "source_files": {"errors", "model", "open_below"},
    "hosts": {
        *("catalog", "errors", "executors", "fleet", "logdir"),
        *("model", "questions", "regex", "schemas", "sizes", "source_files"),
    },
    "capture": {
        *("analysis", "errors", "fit", "readers"),
        *("model", "questions", "sizes", "torch_fit"),
    },  # knows jax; loads these when asked
    "fit": {
        *("analysis", "cache_folder", "errors", "executors", "logdir"),
        *("model", "protos", "questions", "readers", "sizes", "targets", "torch_fit"),
    },
    "torch_fit": {"errors", "model", "readers", "sizes", "targets"},  # knows torch
    "executors": {"errors"},
    "fleet": {
        *("analysis", "cache_folder", "errors", "executors"),
        *("logdir", "model", "numbered_names", "readers", "sizes"),
    },
    "commands": {
        *("catalog", "errors", "executors", "fit", "fleet", "hosts", "logdir"),
        *("model", "questions", "regex", "schemas", "sizes", "source_files", "targets"),
    },
    "pytest_plugin": {"capture", "catalog", "errors", "questions", "regex", "sizes"},  # runs in a user's tests
    "notebook": {"capture", "errors", "questions", "sizes"},
    "cli": {"commands", "errors"},
}
# Likewise the rooms of `questions`.
BASE = {"asking", "records"}
QUESTIONS: dict[str, set[str]] = {
    "asking": {"records"},
    "records": set(),
    "recording": BASE,
    "oom": {*BASE, "recording"},
    "run": {*BASE, "kinds", "oom", "recording"},
    "kinds": {*BASE, "oom", "recording"},
    "explain": {*BASE, "kinds", "oom", "recording"},
    "export": {*BASE, "recording"},
    "compare": {*BASE, "explain", "recording"},
    "fleet": {*BASE, "compare", "export", "recording"},
    "fit": {*BASE, "compare", "recording"},
    "xprof": set(),
}
MAY_IMPORT_THEM = {"hosts", "capture", "fit", "torch_fit"}
HEAVY = {"jax", "jaxlib", "tensorboard", "xprof", "tensorflow", "torch"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.stem.endswith(("_pb2", "_fields")))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@cache  # several tests ask about each module
def imports(path: Path) -> frozenset[str]:
    """Return the full names of all imports of a module, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_lies_below_it(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    used = {room(name) for name in imports(path) if name.startswith("tb_memplugin.")} - {own, "__version__"}
    assert used <= ALLOWED[own], f"{own} must not import {used - ALLOWED[own]}"


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.relative_to(PACKAGE).parts[0] not in MAY_IMPORT_THEM], ids=lambda p: p.stem
)
def test_only_hosts_know_who_is_serving(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & HEAVY


@pytest.mark.parametrize("path", sorted((PACKAGE / "questions").rglob("*.py")), ids=lambda path: path.stem)
def test_a_room_of_questions_imports_only_what_lies_below_it(path: Path) -> None:
    own = path.relative_to(PACKAGE / "questions").parts[0].removesuffix(".py")
    if own == "__init__":
        return
    prefix = "tb_memplugin.questions."
    used = {name.removeprefix(prefix).split(".")[0] for name in imports(path) if name.startswith(prefix)} - {own}
    assert used <= QUESTIONS[own], f"questions/{own} must not import questions/{used - QUESTIONS[own]}"


def test_the_core_loads_without_any_host() -> None:
    """Check jax too: a summary of a file needs only numpy."""
    imported = "tb_memplugin.cli, tb_memplugin.catalog.catalog, tb_memplugin.questions.explain"
    code = f"import sys, {imported}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "tb_memplugin.catalog.catalog" in loaded
    assert not {name.split(".")[0] for name in loaded} & (HEAVY | {"werkzeug", "fsspec"})


def defined_types(path: Path) -> list[str]:
    """Return the names of the classes and type aliases that a module defines at its top level."""
    names = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            # A type alias is capitalized; the names of constants have no lowercase letters, except I64 and the like.
            name, value = node.targets[0].id, ast.unparse(node.value)
            if not value.startswith("TypeVar(") and (re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name) or "NDArray[" in value):
                names.append(name)
    return names


def test_a_class_or_type_alias_has_a_name_of_its_own() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for name in defined_types(path):
            found.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    assert not {name: paths for name, paths in found.items() if len(paths) > 1}
