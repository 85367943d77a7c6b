"""Lines of the source files that profiles name, read below chosen folders only.

A profile's path is hostile text: it is split into parts that may lie below a source root, and a file is opened strictly
below that folder. No link leads out of it, also not one that is made meanwhile.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence

from tb_memplugin.errors import InputError
from tb_memplugin.model.tables import CodeLines
from tb_memplugin.open_below import open_parts, resolve_below

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


MAX_FILE_BYTES = 2 << 20


def read_below(root: str, parts: Sequence[str]) -> tuple[str, bytes] | None:
    """Return the path below `root` that `parts` lead to, and its content; None where there is no such plain file.

    `root` has no links. Links below it are resolved first, and must stay below it; the resolved path is then opened
    part by part without following any, so that a link that is put there in between leads nowhere.
    """
    try:
        inside = resolve_below(root, os.path.join(root, *parts))
        if any(part.startswith(".") for part in inside) or not is_source_name(inside[-1]):
            return None
        content = _read(open_parts(root, inside))
    except (OSError, ValueError):
        return None
    return None if content is None else ("/".join(inside), content)


def _read(handle: int) -> bytes | None:
    with open(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        content = file.read(MAX_FILE_BYTES + 1)
    return content if len(content) <= MAX_FILE_BYTES else None


LINES_AROUND = 3
MAX_LINE = 300  # characters; a longer line is data
# As Python counts lines: form feeds and Unicode's separators end none.
LINE_END = re.compile(r"\r\n|\r|\n")


class SourceFiles:
    """The source files below some folders, which are paths without links. Nothing else is read."""

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self._roots = tuple(dict.fromkeys(roots))

    def around(self, path: str, line: int) -> CodeLines | None:
        """Return the lines around a line of the file that a profile calls `path`.

        It is the file below a root that shares the longest end of that path; None where there is none, or it is no
        text, or shorter than `line`.
        """
        found = self._find(path)
        if found is None:
            return None
        root, inside, content = found
        lines = _lines(content)
        if not 1 <= line <= len(lines):
            return None
        first = max(line - LINES_AROUND, 1)
        near = tuple(text[:MAX_LINE] for text in lines[first - 1 : line + LINES_AROUND])
        return CodeLines(inside, os.path.join(root, *inside.split("/")), first, near)

    def _find(self, path: str) -> tuple[str, str, bytes] | None:
        parts = path_parts(path)
        if parts is None:
            return None
        for root in self._roots:  # first a path that begins with a root
            below = os.path.join(root, "")
            if path.startswith(below) and not any(part.startswith(".") for part in path[len(below) :].split("/")):
                found = read_below(root, [part for part in path[len(below) :].split("/") if part])
                if found is not None:
                    return root, *found
        for suffix in suffixes_of(parts):
            for root in self._roots:
                if os.path.lexists(os.path.join(root, *suffix)):
                    found = read_below(root, suffix)
                    if found is not None:
                        return root, *found
        return None


def _lines(content: bytes) -> list[str]:
    """Return the lines of a text. A file that is no text has no lines."""
    if b"\0" in content:
        return []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return []
    lines = LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


VARIABLE = "TB_MEMPLUGIN_SOURCE_ROOTS"  # for hosts whose command line is not ours


def checked_roots(folders: Iterable[str]) -> list[str]:
    """Return the paths of folders without links. InputError where one is no folder, or is all of the machine."""
    found = []
    for folder in folders:
        path = os.path.realpath(os.path.expanduser(folder))
        if not os.path.isdir(path):
            raise InputError("Cannot open the source root", folder, "give an existing folder with --source-root")
        if os.path.dirname(path) == path:
            raise InputError("Source root too large", folder, "give the folder of the program's source")
        found.append(path)
    return found


def roots_of_environment() -> list[str]:
    """Return the folders that the environment variable lists; those that do not exist have no files."""
    named = (part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part)
    paths = (os.path.realpath(os.path.expanduser(part)) for part in named)
    return [path for path in paths if os.path.dirname(path) != path]
