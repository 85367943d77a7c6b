"""Paths that profiles name, as parts that may lie below a source root. A profile's path is hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Code only: a folder with code also has keys, settings and data.
SUFFIXES = frozenset(
    ".py .pyi .pyx .pxd .ipy .c .cc .cpp .cxx .h .hh .hpp .cu .cuh .m .mm .rs .go .jl .java .kt .scala .swift "
    ".js .mjs .ts .tsx".split()
)
MAX_PATH = 4096
MAX_PARTS = 16
DRIVE = re.compile(r"[A-Za-z]:")
# Below these, a path is that of a library: a file of the user's that has only the same name is another file.
LIBRARIES = ("site-packages", "dist-packages")
PYTHON_LIBRARY = re.compile(r"python\d(\.\d+)?")
# Every package has one.
ANYWHERE = frozenset({"__init__.py", "__main__.py"})


def is_source_name(name: str) -> bool:
    """Return whether a file of this name is code, and not hidden."""
    return not name.startswith(".") and "." in name and name[name.rindex(".") :].lower() in SUFFIXES


def path_parts(path: str) -> list[str] | None:
    """Return the parts of a path below its root; None for one that leaves a folder, is hidden or is no source file."""
    if len(path) > MAX_PATH or not path.isprintable():
        return None
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if parts and DRIVE.fullmatch(parts[0]):
        del parts[0]
    if not parts or not is_source_name(parts[-1]) or ".." in parts:
        return None
    return parts


def suffixes_of(parts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the ends of a path that may name the same file elsewhere, the longest first. Hidden folders end them."""
    fewest = _fewest(parts)
    for count in range(min(len(parts), MAX_PARTS), fewest - 1, -1):
        suffix = parts[-count:]
        if not any(part.startswith(".") for part in suffix):
            yield suffix


def _fewest(parts: Sequence[str]) -> int:
    """Return the number of parts that another path must share to name the same file."""
    fewest = 2 if parts[-1] in ANYWHERE else 1
    for i, part in enumerate(parts[:-1]):
        if part in LIBRARIES or (PYTHON_LIBRARY.fullmatch(part) and i > 0 and parts[i - 1].startswith("lib")):
            fewest = max(len(parts) - i - 1, 2)
    return fewest
