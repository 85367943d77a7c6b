"""Lines of source code around a stack frame's line."""

from __future__ import annotations

from typing import NamedTuple


class CodeLines(NamedTuple):
    """Lines of a file: its path below its root, its complete path, the number of the first line, and the lines."""

    path: str
    file: str
    first: int
    lines: tuple[str, ...]
