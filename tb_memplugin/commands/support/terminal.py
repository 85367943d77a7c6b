"""The terminal of commands: standard streams, which may be closed, full, or unread pipes; progress; and JSON."""

from __future__ import annotations

import io
import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from tb_memplugin.questions.asking.asked import error_answer, failed
from tb_memplugin.sizes import bytes_text

if TYPE_CHECKING:  # reading imports numpy, and --help of all commands imports this file
    from tb_memplugin.catalog.reading import BytesRead, Progress


def prepare() -> None:
    """Make both streams usable: closed ones lead nowhere, and text that the terminal cannot show is escaped."""
    # Python has None for a stream that was closed by the shell.
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(*lines: str) -> None:
    """Print lines, whose control characters are escaped, since names come from files and a terminal would obey them.

    A reader that has closed its pipe has seen enough, and the command continues to its exit code.
    """
    try:
        print("\n".join(map(_printable, lines)))
    except BrokenPipeError:
        close_quietly(sys.stdout)


def bounded(lines: Sequence[str], max_bytes: int) -> list[str]:
    """Return the first lines that fit as UTF-8 when they are shown, and a last one that counts those left out.

    Lines are kept whole: markup that is cut, such as code, would make a name's links and mentions live.
    """
    sizes = [len(_printable(line).encode(errors="replace")) + 1 for line in lines]
    if sum(sizes) <= max_bytes:
        return list(lines)
    room = max_bytes - CLOSING_BYTES
    kept = next((count for count in range(len(lines)) if sum(sizes[: count + 1]) > room), len(lines))
    return [*lines[:kept], "", f"{len(lines) - kept:,} more lines are left out, for the limit of {max_bytes:,} bytes."]


MIN_BYTES = 200  # that a limit leaves room for
CLOSING_BYTES = 120  # of the last line, and of the empty one that ends a table before it


def paragraphs(texts: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of texts, with an empty one between two texts. Texts without lines are left out."""
    for number, text in enumerate(filter(None, map(list, texts))):
        yield from ["", *text] if number else text


def complain(*lines: str) -> None:
    """Print lines to standard error as `show` does, if that can be written to."""
    try:
        print("\n".join(map(_printable, lines)), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        close_quietly(sys.stderr)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def is_reader_gone(stream: TextIO) -> bool:
    """Return whether a stream is a pipe, or a socket, that nobody reads any more."""
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


def print_answer(answer: Mapping[str, object]) -> None:
    """Print an answer, indented on a terminal."""
    by_line = sys.stdout.isatty()
    indent, separators = (2, None) if by_line else (None, (",", ":"))
    show(*json.dumps(answer, indent=indent, separators=separators, allow_nan=False).split("\n"))


def reply(as_json: bool, answer: Callable[[], Mapping[str, object]], lines: Iterable[str]) -> None:
    """Print an answer for a program, or lines for a reader."""
    if as_json:
        print_answer(answer())
    else:
        show(*lines)


def print_failure(error: Exception) -> None:
    """Print an error as JSON, if standard output can be written to."""
    try:
        print_answer(error_answer(error))
        sys.stdout.flush()
    except (OSError, ValueError):
        close_quietly(sys.stdout)


def print_wrong_call(message: str, command: str) -> None:
    """Print a wrong call of a command as JSON."""
    print_answer(failed("usage", message, command, f"see `{command} --help`"))


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
