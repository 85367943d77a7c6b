"""Opening of files strictly below a folder: no link leads out of it, also not one that is made meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from tb_memplugin.source_files.suffixes import is_source_name

MAX_FILE_BYTES = 2 << 20
# Neither follow a link nor wait for a pipe's writer. Windows lacks these flags.
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
HAS_FOLDER_HANDLES = os.open in os.supports_dir_fd


def read_below(root: str, parts: Sequence[str]) -> tuple[str, bytes] | None:
    """Return the path below `root` that `parts` lead to, and its content; None where there is no such plain file.

    `root` has no links. Links below it are resolved first, and must stay below it; the resolved path is then opened
    part by part without following any, so that a link that is put there in between leads nowhere.
    """
    try:
        resolved = os.path.realpath(os.path.join(root, *parts), strict=True)
        inside = os.path.relpath(resolved, root).split(os.sep)
        if inside[0] == os.pardir or os.path.isabs(inside[0]) or any(part.startswith(".") for part in inside):
            return None
        if not is_source_name(inside[-1]):
            return None
        content = _read(_open(root, inside))
    except (OSError, ValueError):
        return None
    return None if content is None else ("/".join(inside), content)


def _open(root: str, parts: Sequence[str]) -> int:
    if not HAS_FOLDER_HANDLES:  # Windows, where links need a privilege
        return os.open(os.path.join(root, *parts), _PLAIN | getattr(os, "O_BINARY", 0))
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _PLAIN, dir_fd=folder)
    finally:
        os.close(folder)


def _read(handle: int) -> bytes | None:
    with open(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        content = file.read(MAX_FILE_BYTES + 1)
    return content if len(content) <= MAX_FILE_BYTES else None
