"""Profile files: their host, size, version stamp and contents."""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import dataclass

from tb_memplugin.errors import InputError
from tb_memplugin.logdir.paths import is_remote
from tb_memplugin.logdir.suffixes import host_name

# Neither follow a link nor wait for a pipe's writer. Windows lacks both flags.
PLAIN_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class DumpedProgram:
    """A program of an XLA dump: its title, which is unique in its folder, and the paths of small files about it."""

    title: str
    module: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFile:
    """A profile of one host, or a standalone file. `stamp` changes when the file does.

    `unreadable`: the reason why the file cannot be read, and the remedy, where its name alone shows that.
    """

    path: str
    host: str
    size: int
    stamp: str
    dumped: DumpedProgram | None = None
    unreadable: str = ""


def host_file(path: str) -> HostFile:
    """Describe a single local file. InputError where it cannot be opened."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError("Cannot read the file", path, reason(error)) from error
    return HostFile(path, host_name(os.path.basename(path)), status.st_size, stamp_of(status))


def read_bytes(file: HostFile) -> memoryview | bytes:
    """Return the content; a local file is mapped, not copied. InputError where it cannot be read."""
    try:
        if is_remote(file.path):
            import fsspec

            with fsspec.open(file.path, "rb") as stream:
                content: bytes = stream.read()
            return content
        with open(file.path, "rb") as stream:
            if file.size == 0:
                return b""
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except Exception as error:  # remote stores raise errors of many types
        raise InputError("Cannot read the file", file.path, reason(error)) from error


def read_beside(path: str, max_bytes: int) -> bytes | None:
    """Return the first `max_bytes` of a small file beside a program; None where there is none, or it is a link."""
    try:
        if is_remote(path):
            import fsspec

            with fsspec.open(path, "rb") as stream:
                content: bytes = stream.read(max_bytes)
            return content
        with open(os.open(path, PLAIN_FILE), "rb") as file:
            return file.read(max_bytes) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except Exception:  # remote stores raise errors of many types
        return None


def stamp_of(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def reason(error: Exception) -> str:
    """Return an error's text, without the path that the caller adds."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
