"""Opens plain files below a folder so that no link leads out of it, whenever it is put there."""

from __future__ import annotations

import os
from collections.abc import Sequence

# Neither follow a link nor wait for a pipe's writer. Windows lacks these flags.
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
HAS_FOLDER_HANDLES = os.open in os.supports_dir_fd


def resolve_below(root: str, path: str) -> list[str]:
    """Return the parts of a path below `root`, which has no links, once those in the path are resolved.

    OSError where it leads out of `root`, or to nothing.
    """
    parts = os.path.relpath(os.path.realpath(path, strict=True), root).split(os.sep)
    if parts[0] == os.pardir or os.path.isabs(parts[0]):
        raise OSError("a link leads out of the folder")
    return parts


def open_parts(root: str, parts: Sequence[str]) -> int:
    """Open a plain file for reading, part by part, without following a link. OSError for a link."""
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
