"""Assumptions of a trace, where a GPU would decide: a sentence and bytes for each."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = str(Path(__file__).parent)


@dataclass
class Assumption:
    """A sentence, the bytes that it adds at most at once, and how often it was made."""

    text: str
    bytes: int = 0
    count: int = 0


@dataclass
class Assumptions:
    """The assumptions of a trace, by a key each."""

    found: dict[str, Assumption] = field(default_factory=dict)

    def note(self, key: str, text: str, size: int = 0) -> int:
        """Note an assumption, and return how often it was made; the largest bytes of its occasions are kept."""
        one = self.found.setdefault(key, Assumption(text))
        one.count += 1
        one.bytes = max(one.bytes, size)
        return one.count


def user_line() -> str:
    """Return the innermost line of the user's code, such as `train.py:7`."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not any(part in file for part in (PACKAGE, "/torch/", "<")):
            return f"{Path(file).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "an unknown line"
