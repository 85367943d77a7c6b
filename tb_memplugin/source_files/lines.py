"""A few lines of code around the line that a stack frame names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from tb_memplugin.model.source_code import CodeLines
from tb_memplugin.source_files.opening import read_below
from tb_memplugin.source_files.suffixes import path_parts, suffixes_of

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
