"""Standard output and standard error, which may be closed, full, or a pipe without a reader."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


def prepare() -> None:
    """Make both streams usable: closed ones lead nowhere, and text that the terminal cannot show is escaped."""
    # Python has None for a stream that was closed by the shell.
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print a text. A reader that has closed its pipe has seen enough, and the command continues to its exit code."""
    try:
        print(text)
    except BrokenPipeError:
        close_quietly(sys.stdout)


def complain(text: str) -> None:
    """Print a text to standard error, if that can be written to."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        close_quietly(sys.stderr)


def is_reader_gone(stream: TextIO) -> bool:
    """Return whether a stream is a pipe, or a socket, that nobody reads any more."""
    import select

    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)  # errors are always reported
        return bool(poll.poll(0))
    except (AttributeError, OSError, ValueError):  # Windows has no poll
        return True


def close_quietly(stream: TextIO) -> None:
    """Lead a stream nowhere, or Python reports its failure again at the end, with an exit code of its own."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def printable(text: str) -> str:
    """Escape control characters, since names come from files and a terminal would obey them."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
