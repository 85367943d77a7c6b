"""Profile files: their host, size, version stamp and contents."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

from tb_memplugin.errors import InputError
from tb_memplugin.logdir.paths import is_remote
from tb_memplugin.logdir.suffixes import host_name


@dataclass(frozen=True, slots=True)
class HostFile:
    """A profile of one host, or a standalone file. `stamp` changes when the file does."""

    path: str
    host: str
    size: int
    stamp: str


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


def stamp_of(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def reason(error: Exception) -> str:
    """Return an error's text, without the path that the caller adds."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
