"""The sources of a step and of the modules that it imports, to run it on a machine that lacks them."""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tb_memplugin.errors import InputError
from tb_memplugin.fit.cache import replacing
from tb_memplugin.fit.compile_task import ScriptCall, Sources
from tb_memplugin.fit.inputs import PACKAGE, installed_folders

MAX_BYTES = 64 << 20
OWN = Path(PACKAGE).name


def collect_sources(step: str, script: ScriptCall | None = None) -> Sources:
    """Return the source of a step, and of the modules it imports that are not installed packages.

    Of a script, the files below the working folder that its command line names, such as a configuration, come too.
    """
    place, _, name = step.rpartition(":")
    is_file, working = place.endswith(".py"), Path.cwd()
    folders = [*([Path(place).resolve().parent] if is_file else ()), *([working] if script is not None else ())]
    folders += [path for entry in sys.path if (path := Path(entry or os.curdir).resolve()).is_dir()]
    roots = [*dict.fromkeys(folders)]
    first = [Path(place).resolve()] if is_file else list(_modules(place.partition(".")[0], roots))
    found, waiting = dict[Path, bytes](), [*first, *(_named_files(script.arguments, working) if script else ())]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_bytes()
            waiting += [other for module in _imports(found[path]) for other in _modules(module, roots)]
    if sum(map(len, found.values())) > MAX_BYTES:
        raise InputError("Too much source to send", step, "install the modules that it imports on the workers")
    used = [root for root in roots if any(_root(path, roots) == root for path in found)]
    files = tuple(
        (f"{used.index(root)}/{path.relative_to(root).as_posix()}", content)
        for path, content in sorted(found.items())
        if (root := _root(path, roots))
    )
    step = f"0/{Path(place).name}:{name}" if is_file else step
    return Sources(step, len(used), files, used.index(working) if script is not None and working in used else 0)


def _named_files(words: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that a command line names, as words or behind `=`."""
    for word in words:
        for name in (word, word.partition("=")[2]):
            path = (folder / name).resolve()
            if name and path.is_file() and path.is_relative_to(folder):
                yield path


def _imports(content: bytes) -> Iterator[str]:
    """Yield the names of the top-level modules that a source imports."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _modules(name: str, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the file of a top-level module, or all files of a package, unless it is installed."""
    if name in sys.stdlib_module_names or name == OWN:
        return
    for root in roots:
        file, folder = root / f"{name}.py", root / name
        if file.is_file() or (folder / "__init__.py").is_file():
            if not os.path.join(root, "").startswith(installed_folders()):
                yield from [file] if file.is_file() else folder.rglob("*.py")
            return
    for root in roots:  # a package without __init__.py comes last, as in Python's own search
        if (root / name).is_dir() and not os.path.join(root, "").startswith(installed_folders()):
            yield from (root / name).rglob("*.py")


def _root(path: Path, roots: Sequence[Path]) -> Path:
    return next(root for root in roots if path.is_relative_to(root))


def unpack(sources: Sources, below: Path) -> Path:
    """Write the files into a folder of their own, unless it exists; return the folder."""
    digest = hashlib.sha256()
    for name, content in sources.files:
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    folder = below / "sources" / digest.hexdigest()
    for name, content in sources.files:
        path = folder / name
        if not (path.is_file() and path.read_bytes() == content):
            with replacing(path) as partial:
                Path(partial).write_bytes(content)
    return folder
