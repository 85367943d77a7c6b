"""Profile files: their host, size, version stamp and contents."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import NamedTuple

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.formats import Format, format_of
from tb_memplugin.logdir.local import allocator, extent, read_local, stamp_of
from tb_memplugin.logdir.paths import is_remote, path_text
from tb_memplugin.logdir.suffixes import host_name
from tb_memplugin.sizes import bytes_text

# Neither follow a link nor wait for a pipe's writer. Windows lacks both flags.
PLAIN_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class DumpedProgram(NamedTuple):
    """A program of an XLA dump: its title, which is unique in its folder, and the paths of small files about it."""

    title: str
    module: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stages:
    """Files of an XLA dump with modules at stages of compilation that have no buffer assignment.

    `count`: files that are protos. `modules`: modules that were dumped at no other stage.
    """

    count: int
    modules: tuple[str, ...] = ()


class HostFile(NamedTuple):
    """A profile of one host, or a standalone file. `stamp` changes when the file does.

    `modified_ns`: the modification time, in nanoseconds since 1970; 0 where it is unknown.
    `unreadable`: the reason why the file cannot be read, and the remedy, where its name alone shows that.
    `stages`: this entry stands for all files of its folder that are stages without buffer assignment.
    """

    path: str
    host: str
    size: int
    stamp: str
    dumped: DumpedProgram | None = None
    unreadable: str = ""
    modified_ns: int = 0
    stages: Stages | None = None


def host_file(path: str) -> HostFile:
    """Describe a single local file. InputError where it cannot be opened."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the file ({reason(error)})", path, remedy(error)) from error
    host = path_text(host_name(os.path.basename(path)))
    return HostFile(path, host, status.st_size, stamp_of(status), modified_ns=status.st_mtime_ns)


def read_content(file: HostFile) -> tuple[memoryview | bytes, int]:
    """Return the content that the file's format needs, and the number of bytes before it that are left out.

    ReadError where it cannot be read.
    """
    known = format_of(file.path)
    if known is not None and known.max_bytes is not None and file.size > known.max_bytes:
        what = f"too large for {known.label}: {bytes_text(file.size)}"
        raise InputError(what, file.path, f"such files have at most {bytes_text(known.max_bytes)}; is it damaged?")
    begin = 0 if known is None or known.end_bytes is None else -known.end_bytes
    return _read(file, begin, None, known)


def read_bytes(file: HostFile, max_bytes: int | None = None) -> memoryview | bytes:
    """Return the content, or the first `max_bytes` of it. ReadError where it cannot be read."""
    return _read(file, 0, max_bytes)[0]


def _read(
    file: HostFile, begin: int, max_bytes: int | None, known: Format | None = None
) -> tuple[memoryview | bytes, int]:
    """Return up to `max_bytes` from `begin`, which counts from the end where it is negative, and where they begin.

    Of a large file of a `known` format, only the parts that its reader needs.
    """
    try:
        if is_remote(file.path):
            return _read_remote(file, begin, max_bytes, known)
        return read_local(file.path, begin, max_bytes, known)
    except InputError:
        raise
    except MemoryError as error:
        raise ReadError("not enough memory", file.path, "end other programs, or use a larger machine") from error
    except Exception as error:  # remote stores raise errors of many types
        raise ReadError(f"Cannot read the file ({reason(error)})", file.path, remedy(error)) from error


def _read_remote(
    file: HostFile, begin: int, max_bytes: int | None, known: Format | None
) -> tuple[memoryview | bytes, int]:
    from tb_memplugin.logdir.remote.ranges import RemoteFile
    from tb_memplugin.logdir.remote.reading import read_remote, read_stream

    remote = RemoteFile(file.path, file.size, file.stamp)
    if not remote.size:
        return read_stream(remote, 0, 0), 0
    begin, size = extent(begin, max_bytes, remote.size)
    return read_remote(remote, begin, size, known, allocator(file.path)), begin


def read_beside(path: str, max_bytes: int) -> bytes | None:
    """Return the first `max_bytes` of a small file beside a program; None where there is none, or it is a link."""
    try:
        if is_remote(path):
            import fsspec

            system, name = fsspec.core.url_to_fs(path)
            content: bytes = system.cat_file(name, start=0, end=max_bytes)
            return content[:max_bytes]  # a web server may send more
        with open(os.open(path, PLAIN_FILE), "rb") as file:
            return file.read(max_bytes) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except Exception:  # remote stores raise errors of many types
        return None


def reason(error: Exception) -> str:
    """Return an error's text, without the path that the caller adds."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def remedy(error: Exception) -> str:
    """Return what helps against an error of the file system or of a remote store."""
    if isinstance(error, FileNotFoundError | ValueError):
        return "check the path"
    return "change its permissions" if isinstance(error, PermissionError) else "try again, or copy the file here"
