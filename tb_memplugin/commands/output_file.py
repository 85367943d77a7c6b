"""Output files of commands: checked before anything is read, compressed by their suffix, and complete or absent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from tb_memplugin.errors import InputError

if TYPE_CHECKING:
    from types import FrameType

ENDING = ("SIGTERM", "SIGHUP")  # Windows lacks the latter
GZIP_LEVEL = 1  # rows are so similar that a higher level saves little and takes several times as long


def check_output(file: str, path: str, force: bool) -> None:
    """Raise InputError where the file must not be written."""
    from tb_memplugin.logdir import is_read_with, is_remote

    if is_remote(file):
        raise InputError("Cannot write to a remote path", file, "write a local file and copy it")
    if path != "-" and is_read_with(path, file):
        raise InputError("The logdir is never written to", file, "choose a file outside of it")
    if os.path.isdir(file):
        raise InputError("The output file is a folder", file, "give the name of a file in it")
    if os.path.lexists(file) and not force:
        raise InputError("The output file exists", file, "choose another name, or overwrite it with --force")


@contextmanager
def compress(stream: BinaryIO, file: str) -> Iterator[BinaryIO]:
    if not file.endswith(".gz"):
        yield stream
        return
    import gzip

    # Without a name and a time in the header, the same rows give the same bytes.
    with gzip.GzipFile("", "wb", GZIP_LEVEL, stream, mtime=0) as compressed:
        yield cast(BinaryIO, compressed)


@contextmanager
def atomic_file(file: str) -> Iterator[BinaryIO]:
    """Open a stream that replaces the file once it is complete; if writing fails, the file stays as it was."""
    import secrets

    target = os.path.realpath(file)
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe or a device, which stays one
            with open(target, "wb") as stream:
                yield stream
            return
        temporary = os.path.join(os.path.dirname(target), f".tb-memplugin-{secrets.token_hex(8)}")
        try:
            with open(temporary, "xb") as stream:
                yield stream
            os.replace(temporary, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise InputError("Cannot write the file", file, error.strerror or str(error)) from error


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Raise SystemExit in the block when a signal ends the process, so that no temporary file is left."""
    import signal
    import threading

    def end(number: int, frame: FrameType | None) -> None:
        for other in caught:
            signal.signal(other, signal.SIG_IGN)  # not to interrupt the cleaning up
        sys.exit(128 + number)

    # A command that runs under nohup ignores SIGHUP. Threads cannot set handlers.
    in_main = threading.current_thread() is threading.main_thread()
    ending = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    caught = [number for number in ending if in_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)
