"""The content of a local file: whole, or the parts that its reader needs."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from io import FileIO

import numpy as np

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.formats import ByteRange, Format
from tb_memplugin.free_memory import require
from tb_memplugin.logdir.counting import CHUNK_BYTES, count_bytes
from tb_memplugin.logdir.parts import Allocate, read_needed

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


def read_local(path: str, begin: int, max_bytes: int | None, known: Format | None) -> tuple[memoryview, int]:
    """Copy up to `max_bytes` from `begin` into memory, and return where they begin, as `extent` does.

    Of a large file of a `known` format, only the parts that its reader needs. A map of the file would end the process
    when a writer truncates the file.
    """
    with FileIO(path, "rb", opener=_open_at_once) as stream:
        before = os.fstat(stream.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise InputError("not a file", path, "it is a pipe or a device; save its content as a file")
        begin, size = extent(begin, max_bytes, before.st_size)
        file = LocalFile(stream, path, before.st_size)
        content = read_needed(file, known, allocator(path)) if size == before.st_size >= MIN_BYTES else None
        if content is None:
            content = allocator(path)(size)
            file.fetch_into([(begin, content)])
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


def changed(path: str) -> ReadError:
    return ReadError("the file changed while it was read", path, "open it again when it is complete")


def stamp_of(status: os.stat_result) -> str:
    """Return a text that changes when the file does."""
    return f"{status.st_mtime_ns}-{status.st_size}"


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
