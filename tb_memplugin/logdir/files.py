"""Profile files: their host, size and version stamp, and their contents, whole or the parts that are needed."""

import os
import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import FileIO
from typing import NamedTuple, Self

import numpy as np

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.formats import ByteRange, Format, format_of
from tb_memplugin.free_memory import require
from tb_memplugin.logdir.names import host_name, is_remote, path_text
from tb_memplugin.logdir.parts import CHUNK_BYTES, Allocate, changed, count_bytes, read_range
from tb_memplugin.logdir.remote_files import RemoteFile, read_remote, read_stream
from tb_memplugin.open_below import open_parts, resolve_below
from tb_memplugin.sizes import bytes_text

# Reading a file takes as much memory again for its tables, or more.
FREE_MULTIPLE = 2
MIN_BYTES = 16 << 20  # smaller files are read as a whole within some milliseconds


class LocalFile:
    """A local file that is open. ReadError where it becomes shorter."""

    def __init__(self, stream: FileIO, path: str, size: int) -> None:
        self.size = size
        self._stream = stream
        self._path = path

    def fetch(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of each range."""
        chunks = [bytearray(end - begin) for begin, end in ranges]
        self.fetch_into([(begin, memoryview(chunk)) for (begin, _), chunk in zip(ranges, chunks, strict=True)])
        return [bytes(chunk) for chunk in chunks]

    def fetch_into(self, targets: Sequence[tuple[int, memoryview]]) -> None:
        """Fill each view with the bytes of the file from a position on."""
        for begin, target in targets:
            self._stream.seek(begin)
            done = 0
            while done < len(target):
                count = self._stream.readinto(target[done : done + CHUNK_BYTES])
                if not count:
                    raise changed(self._path)
                done += count
                count_bytes(count)


def read_local(path: str, begin: int, max_bytes: int | None, known: Format | None, top: str) -> tuple[memoryview, int]:
    """Copy up to `max_bytes` from `begin` into memory, and return where they begin, as `extent` does.

    Of a large file of a `known` format, only the parts that its reader needs. A map of the file would end the process
    when a writer truncates the file. `top`: as in HostFile.
    """
    with FileIO(path, "rb", opener=partial(_open, top)) as stream:
        before = os.fstat(stream.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise InputError("not a file", path, "it is a pipe or a device; save its content as a file")
        begin, size = extent(begin, max_bytes, before.st_size)
        file = LocalFile(stream, path, before.st_size)
        content, begin = read_range(file, begin, size, known, allocator(path), MIN_BYTES)
        after = os.fstat(stream.fileno())
    # A longer file is one that grows: what was read is its beginning, as it was.
    if after.st_size <= before.st_size and stamp_of(after) != stamp_of(before):
        raise changed(path)
    return content.toreadonly(), begin


def extent(begin: int, max_bytes: int | None, file_bytes: int) -> tuple[int, int]:
    """Return where to begin, which counts from the end where it is negative, and how much to read."""
    begin = max(0, begin + file_bytes) if begin < 0 else begin
    return begin, min(max_bytes or file_bytes, file_bytes - begin)


def allocator(path: str) -> Allocate:
    """Return a function that allocates memory for parts of a file; ReadError where memory is too small."""

    def allocate(nbytes: int) -> memoryview:
        require(nbytes * FREE_MULTIPLE, path)
        return np.empty(nbytes, np.uint8).data

    return allocate


def stamp_of(status: os.stat_result) -> str:
    """Return a text that changes when the file does."""
    return f"{status.st_mtime_ns}-{status.st_size}"


def _open(top: str, path: str, flags: int = os.O_RDONLY) -> int:
    """Open a file, one of a logdir below its folder, without waiting for the writer of a pipe."""
    if top:
        return open_parts(top, resolve_below(top, path))
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class Entry(NamedTuple):
    """A folder, a file that can be read by its suffix, or another file of an XLA dump, without size and stamp."""

    name: str
    path: str
    is_folder: bool
    size: int = 0
    stamp: str = ""
    modified_ns: int = 0  # since 1970; 0: unknown
    top: str = ""  # as in HostFile


FolderLister = Callable[[str], list[Entry]]


class ProgramFile(NamedTuple):
    """A compiled program: its title, which is unique in its run, and in an XLA dump the paths of small files about it.

    `title`: empty where its module's name is unique in the run. `texts`: the rest of a program as text.
    """

    title: str
    module: str
    beside: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stages:
    """Files of a folder, or one file, with modules at stages of compilation that have no buffer assignment.

    `count`: files that are protos. `modules`: names of modules that were dumped at no other stage; `path`: the first
    file of one, as text.
    """

    count: int
    modules: tuple[str, ...] = ()
    path: str = ""
    numbered: bool = False  # the files of the folder are an XLA dump's

    def without(self, programs: Collection[str]) -> Self:
        """Return the stages where modules of these names have a program, in any file of the run.

        An XLA dump may have several modules of a name, which its files number: theirs are paired by number.
        """
        return self if self.numbered else replace(self, modules=tuple(m for m in self.modules if m not in programs))


class HostFile(NamedTuple):
    """A profile of one host, or a standalone file. `stamp` changes when the file does.

    `modified_ns`: the modification time, in nanoseconds since 1970; 0 where it is unknown.
    `unreadable`: the reason why the file cannot be read, and the remedy, where its name alone shows that.
    `stages`: this entry stands for all files of its folder that are stages without buffer assignment.
    `top`: the local logdir, without links, that the file must be in when it is opened; empty for one that a user named.
    """

    path: str
    host: str
    size: int
    stamp: str
    program: ProgramFile | None = None
    unreadable: str = ""
    modified_ns: int = 0
    stages: Stages | None = None
    top: str = ""

    @property
    def format(self) -> Format | None:
        """The format that the file's name states."""
        return format_of(self.path)


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
    known = file.format
    if known is not None and known.max_bytes is not None and file.size > known.max_bytes:
        what = f"too large for {known.label}: {bytes_text(file.size)}"
        raise InputError(what, file.path, f"such files have at most {bytes_text(known.max_bytes)}; is it damaged?")
    begin = 0 if known is None or known.end_bytes is None else -known.end_bytes
    return _read(file, begin, None, known)


def with_texts(file: HostFile, content: memoryview | bytes) -> memoryview | bytes:
    """Return the content of a program as text, followed by the texts that complete it. InputError if too large."""
    known = file.format
    if file.program is None or not file.program.texts or known is None or known.max_bytes is None:
        return content
    pieces = [content]
    for path in file.program.texts:
        left = known.max_bytes - sum(map(len, pieces))
        piece = read_beside(file.top, path, left + 1) or b""
        if len(piece) > left:
            what = f"the texts of this program have more than {bytes_text(known.max_bytes)}"
            raise InputError(what, file.path, "dump with --xla_dump_hlo_as_proto, which is smaller")
        pieces.append(piece)
    return b"\n".join(pieces)


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
        if not is_remote(file.path):
            return read_local(file.path, begin, max_bytes, known, file.top)
        remote = RemoteFile(file.path, file.size, file.stamp)
        if not remote.size:
            return read_stream(remote, 0, 0), 0
        begin, size = extent(begin, max_bytes, remote.size)
        return read_remote(remote, begin, size, known, allocator(file.path))
    except InputError:
        raise
    except MemoryError as error:
        raise ReadError("not enough memory", file.path, "end other programs, or use a larger machine") from error
    except Exception as error:  # remote stores raise errors of many types
        raise ReadError(f"Cannot read the file ({reason(error)})", file.path, remedy(error)) from error


def read_beside(top: str, path: str, max_bytes: int) -> bytes | None:
    """Return the first `max_bytes` of a small file beside a program; None where there is none, or it is a link."""
    try:
        if is_remote(path):
            import fsspec

            system, name = fsspec.core.url_to_fs(path)
            content: bytes = system.cat_file(name, start=0, end=max_bytes)
            return content[:max_bytes]  # a web server may send more
        if os.path.islink(path):
            return None
        with open(_open(top, path), "rb") as file:
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
