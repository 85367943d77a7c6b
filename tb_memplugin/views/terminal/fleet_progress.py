"""Progress of reading a fleet: a bar on standard error, where that is a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self, TextIO

WIDTH = 10
WAIT_SECONDS = 0.5  # before the first bar; what is in the cache is there by then
EVERY_SECONDS = 0.2


class FleetProgress:
    """Counts files. The bar disappears at the end."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream, self._shown = stream, not quiet and stream.isatty()
        self._begun = time.monotonic()
        self._last = self._begun + WAIT_SECONDS - EVERY_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write("")

    def done(self, count: int, total: int) -> None:
        """Show the number of files that are read."""
        now = time.monotonic()
        if self._shown and now - self._last >= EVERY_SECONDS:
            self._last = now
            self._write(bar(count, total, now - self._begun))

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()


def bar(count: int, total: int, seconds: float) -> str:
    """Return the bar as a line of text."""
    filled = WIDTH * count // max(total, 1)
    return f"[{'#' * filled}{'-' * (WIDTH - filled)}] {count:,} of {total:,} files, {seconds:.0f} s"
