"""The progress of reading files, as a line on the terminal that disappears when they are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tb_memplugin.sizes import bytes_text

if TYPE_CHECKING:
    from tb_memplugin.catalog.progress import BytesRead, Progress

WAIT_SECONDS = 0.5  # before the first line; most files are read by then
EVERY_SECONDS = 0.2
CLEAR = "\r\x1b[K"


def progress_text(now: BytesRead) -> str:
    """Return the bytes that are read, and the elapsed time, as a line."""
    seconds = f"{now.seconds:.0f} s"
    if now.read >= now.total:
        return f"Analyzing {bytes_text(now.total)}, {seconds}"
    return f"Reading {bytes_text(now.read)} of {bytes_text(now.total)}, {seconds}"


@contextmanager
def shown_on_terminal(progress: Progress) -> Iterator[None]:
    """Show the progress on standard error while the block runs, if that is a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    import threading

    ended = threading.Event()

    def show() -> None:
        wait = WAIT_SECONDS
        while not ended.wait(wait):
            wait = EVERY_SECONDS
            if (now := progress.of_all()).total:
                stream.write(f"{CLEAR}{progress_text(now)}")
                stream.flush()
        if wait == EVERY_SECONDS:
            stream.write(CLEAR)
            stream.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
