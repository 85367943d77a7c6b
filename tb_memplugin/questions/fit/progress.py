"""Progress of a fit on standard error: a bar where it is a terminal, else a line for each candidate."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TextIO

from tb_memplugin.model.fit import LargestValue, Outcome
from tb_memplugin.questions.asking.text_table import bar_text
from tb_memplugin.questions.fit.words import candidate_text, size_text
from tb_memplugin.sizes import counted

COMPILES_OF_A_SEARCH = 12


def announcement(targets: Sequence[tuple[str, int, int | None]]) -> str:
    """Return a line about the targets, with their devices and bytes per device."""
    texts = [
        f"{target} ({counted(devices, 'device')}{f', {size_text(size)} each' if size else ''})"
        for target, devices, size in targets
    ]
    return f"{', '.join(texts)}: no hardware needed"


class FitProgress:
    """A count of compiled candidates. `rows` is the number of wanted answers, each of which may take a search."""

    def __init__(self, stream: TextIO, rows: int, searched: bool) -> None:
        self._stream, self._each = stream, COMPILES_OF_A_SEARCH if searched else 1
        self._rows, self._begun = rows, time.monotonic()
        self._done = self._finished = 0
        self._lock = threading.Lock()

    def done(self, outcome: Outcome) -> None:
        """Count a compiled candidate."""
        with self._lock:
            self._done += 1
            if self._stream.isatty():
                self._stream.write(f"\r{self.bar()}\x1b[K")
            else:
                result = outcome.error or f"{size_text(outcome.reserved_bytes)} in {outcome.seconds:.1f} s"
                self._stream.write(f"{candidate_text(outcome)}: {result}\n")
            self._stream.flush()

    def finished(self, answer: LargestValue) -> None:
        """Count a row's answer, and expect as many compilations for each of the others."""
        with self._lock:
            self._finished += 1

    def bar(self) -> str:
        """Return the bar as a line of text."""
        total = max(
            self._done, self._done * self._rows // self._finished if self._finished else self._rows * self._each
        )
        seconds = int(time.monotonic() - self._begun)
        return f"{bar_text(self._done, total)} {self._done} of about {total}, {seconds // 60}:{seconds % 60:02d}"

    def close(self) -> None:
        """Remove the bar."""
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")
            self._stream.flush()
