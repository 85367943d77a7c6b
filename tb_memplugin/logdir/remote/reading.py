"""The content of a remote file, by ranges of its bytes: whole, or the parts that its reader needs."""

from __future__ import annotations

from tb_memplugin.formats import Format
from tb_memplugin.logdir.counting import CHUNK_BYTES, count_bytes
from tb_memplugin.logdir.parts import Allocate, read_needed
from tb_memplugin.logdir.remote.ranges import NoRangesError, RemoteFile

# Smaller files are read as a whole: a request takes about as long as this many bytes.
MIN_BYTES = 1 << 20
MAX_UNKNOWN_BYTES = 1 << 30  # of a file whose store does not give its size


def read_remote(file: RemoteFile, begin: int, size: int, known: Format | None, allocate: Allocate) -> memoryview:
    """Return `size` bytes from `begin`; where that is the whole file, only the parts that its reader needs.

    `known`: the format of the file. Raises ReadError where the file changes, and errors of the store.
    """
    try:
        if size <= MIN_BYTES:
            return _read_at_once(file, begin, size, allocate)
        with file.unchanged():
            content = read_needed(file, known, allocate) if not begin else None
            if content is None:
                content = allocate(size)
                file.fetch_into([(begin, content)])
        return content.toreadonly()
    except NoRangesError:
        return read_stream(file, begin, size)


def read_stream(file: RemoteFile, begin: int, size: int) -> memoryview:
    """Return bytes that a store gives in one answer alone; of an unknown `size`, 0, at most MAX_UNKNOWN_BYTES."""
    with file.system.open(file.path, "rb") as stream:
        if begin:
            stream.seek(begin)
        left, chunks = size or MAX_UNKNOWN_BYTES, []
        while left and (chunk := stream.read(min(left, CHUNK_BYTES))):
            chunks.append(chunk)
            left -= len(chunk)
            count_bytes(len(chunk))
    return memoryview(b"".join(chunks))


def _read_at_once(file: RemoteFile, begin: int, size: int, allocate: Allocate) -> memoryview:
    """Return the bytes of one answer, which are of one version of the file."""
    target = allocate(size)
    target[:] = file.fetch_last(begin) if begin + size == file.size else file.fetch([(begin, begin + size)])[0]
    return target.toreadonly()
