"""Profile files: their host, size, version stamp and contents."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

import numpy as np

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.formats import Format, format_of
from tb_memplugin.free_memory import require
from tb_memplugin.logdir.counting import CHUNK_BYTES, count_bytes
from tb_memplugin.logdir.paths import is_remote, path_text
from tb_memplugin.logdir.suffixes import host_name
from tb_memplugin.sizes import bytes_text

# Reading a file takes as much memory again for its tables, or more.
FREE_MULTIPLE = 2
# Neither follow a link nor wait for a pipe's writer. Windows lacks both flags.
PLAIN_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class DumpedProgram:
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


@dataclass(frozen=True, slots=True)
class HostFile:
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
        raise InputError("Cannot read the file", path, reason(error)) from error
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

    Of a remote file of a `known` format, only the parts that its reader needs.
    """
    try:
        if is_remote(file.path):
            return _read_remote(file, begin, max_bytes, known)
        return _read_local(file.path, begin, max_bytes)
    except InputError:
        raise
    except MemoryError as error:
        raise ReadError("not enough memory", file.path, "end other programs, or use a larger machine") from error
    except Exception as error:  # remote stores raise errors of many types
        raise ReadError("Cannot read the file", file.path, reason(error)) from error


def _read_remote(
    file: HostFile, begin: int, max_bytes: int | None, known: Format | None
) -> tuple[memoryview | bytes, int]:
    from tb_memplugin.logdir.remote.ranges import RemoteFile
    from tb_memplugin.logdir.remote.reading import read_remote, read_stream

    remote = RemoteFile(file.path, file.size, file.stamp)
    if not remote.size:
        return read_stream(remote, 0, 0), 0
    begin, size = _extent(begin, max_bytes, remote.size)

    def allocate(nbytes: int) -> memoryview:
        require(nbytes * FREE_MULTIPLE, file.path)
        return np.empty(nbytes, np.uint8).data

    return read_remote(remote, begin, size, known, allocate), begin


def _read_local(path: str, begin: int, max_bytes: int | None) -> tuple[memoryview, int]:
    """Copy the content into memory. A map of the file would end the process when a writer truncates the file."""
    with open(path, "rb", buffering=0, opener=_open_at_once) as stream:
        before = os.fstat(stream.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise InputError("not a file", path, "it is a pipe or a device; save its content as a file")
        begin, size = _part(begin, max_bytes, before.st_size, path)
        content = np.empty(size, np.uint8).data
        stream.seek(begin)
        done = 0
        while done < size and (count := stream.readinto(content[done : done + CHUNK_BYTES])):
            done += count
            count_bytes(count)
        after = os.fstat(stream.fileno())
    # A longer file is one that grows: what was read is its beginning, as it was.
    rewritten = after.st_size <= before.st_size and stamp_of(after) != stamp_of(before)
    if done < size or rewritten:
        raise ReadError("the file changed while it was read", path, "open it again when it is complete")
    return content.toreadonly(), begin


def _part(begin: int, max_bytes: int | None, file_bytes: int, path: str) -> tuple[int, int]:
    """Return where to begin and how much to read. ReadError where memory is too small for it."""
    begin, size = _extent(begin, max_bytes, file_bytes)
    require(size * FREE_MULTIPLE, path)
    return begin, size


def _extent(begin: int, max_bytes: int | None, file_bytes: int) -> tuple[int, int]:
    begin = max(0, begin + file_bytes) if begin < 0 else begin
    return begin, min(max_bytes or file_bytes, file_bytes - begin)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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


def stamp_of(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def reason(error: Exception) -> str:
    """Return an error's text, without the path that the caller adds."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
