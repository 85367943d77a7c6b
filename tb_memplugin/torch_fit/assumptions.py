"""Assumptions of a trace, where a GPU would decide: a sentence and bytes for each."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tb_memplugin.sizes import bytes_text, counted

PACKAGE = str(Path(__file__).parent)
SHOWN_LINES = 3


@dataclass
class Assumption:
    """A sentence, the bytes that it adds at most at once, and how often it was made at each line of the program."""

    text: str
    bytes: int = 0
    lines: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """Return the sentence with its first lines, or with its bytes."""
        lines = list(self.lines)[:SHOWN_LINES]
        if len(self.lines) > SHOWN_LINES:
            lines.append(counted(len(self.lines) - SHOWN_LINES, "other line"))
        places = f" at {', '.join(lines)}" if lines else ""
        return f"{self.text}{places}{f' ({bytes_text(self.bytes)})' if self.bytes else ''}"


@dataclass
class Assumptions:
    """The assumptions of a trace, by their text."""

    found: dict[str, Assumption] = field(default_factory=dict)

    def note(self, text: str, size: int = 0) -> Assumption:
        """Note an assumption; the largest bytes of its occasions are kept."""
        one = self.found.setdefault(text, Assumption(text))
        one.bytes = max(one.bytes, size)
        return one

    def note_line(self, text: str) -> int:
        """Note an assumption at the current line of the program, and return how often it was made there."""
        lines, line = self.note(text).lines, user_line()
        lines[line] += 1
        return lines[line]


def user_line() -> str:
    """Return the innermost line of the user's code, such as `train.py:7`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not any(part in file for part in (PACKAGE, "/torch/", "<")):
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"
