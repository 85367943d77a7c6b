"""The content of a remote file, by ranges of its bytes: whole, or the parts that its reader needs.

Several ranges are read at once, with retries, and refused where the file changes in between. Stores name the versions
and times of their files differently.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tb_memplugin.formats import ByteRange, Format
from tb_memplugin.logdir.parts import CHUNK_BYTES, Allocate, changed, count_bytes, read_range

# Times that are larger than the year 5138 in seconds are in milliseconds.
MAX_SECONDS = 10**11
MAX_MILLISECONDS = MAX_SECONDS * 1000
VERSIONS = ("etag", "ETag", "mtime", "updated", "Last-Modified", "created")
TIMES = ("mtime", "updated", "LastModified", "last_modified", "modified", "modificationTime", "created")


def stored_stamp(info: dict[str, Any]) -> str:
    """Return a text that changes with the file: its version, or its time, and its size."""
    # Azure quotes an ETag in answers about one file, and not in listings.
    version = next((str(info[key]).strip('"') for key in VERSIONS if info.get(key)), "")
    return f"{version}-{stored_size(info)}"


def stored_size(info: dict[str, Any]) -> int:
    """Return the bytes of a file; 0 where the store does not give them."""
    return int(info.get("size") or 0)


def stored_modified_ns(info: dict[str, Any]) -> int:
    """Return the modification time that a store gives for a file, in nanoseconds since 1970; 0 where it is unknown.

    Each store has another name for it, and another type: seconds, milliseconds, a date, or its text.
    """
    for key in TIMES:
        value = info.get(key)
        try:
            if isinstance(value, str):
                value = datetime.fromisoformat(value)
            if isinstance(value, datetime):
                value = value.replace(tzinfo=value.tzinfo or UTC).timestamp()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < MAX_MILLISECONDS:
                return int(value * (10**9 if value < MAX_SECONDS else 10**6))
        except (ValueError, OverflowError, OSError):
            continue
    return 0


# A store answers one request with some 100 MB/s. Larger ranges would delay the count of bytes that were read.
RANGE_BYTES = 8 << 20
AT_ONCE = 8  # ranges, which are held besides the content that they become part of
# Between the attempts for a range. S3, Google Cloud Storage and Azure also retry on their own.
WAIT_SECONDS = (0.2, 0.8, 3.2)
# Stores that name the same version of a file in a listing of its folder and in answers about the file.
SAME_VERSIONS = frozenset({"s3", "s3a", "gs", "gcs"})
LASTING = (FileNotFoundError, PermissionError, NotImplementedError, ImportError, TypeError, MemoryError)


class NoRangesError(Exception):
    """The store answers requests for a range with other bytes, as servers that cannot read ranges do."""


class RemoteFile:
    """A file in a remote store. `size` is 0 where the store does not give it."""

    def __init__(self, url: str, size: int, stamp: str) -> None:
        """`size`, `stamp`: as the file was listed; looked up where the listing lacks them."""
        import fsspec

        self.system: Any
        self.system, self.path = fsspec.core.url_to_fs(url)
        self.url = url
        protocols = {self.system.protocol} if isinstance(self.system.protocol, str) else set(self.system.protocol)
        self._may_lack_ranges = "http" in protocols
        self._listed = stamp if protocols & SAME_VERSIONS else ""
        self.size = size or stored_size(self.system.info(self.path))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise ReadError where the file changes while the block reads it, or has changed since it was listed."""
        before = self._listed or self._stamp()
        yield
        if before != self._stamp():
            raise changed(self.url)

    def _stamp(self) -> str:
        for cached in (self.path, self.path.rpartition("/")[0]):  # listings of the folder, too
            self.system.invalidate_cache(cached)
        info = self.system.info(self.path)
        if stored_size(info) != self.size:
            raise changed(self.url)
        return stored_stamp(info)

    def fetch(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of each range, all asked for at once. NoRangesError where the store returns others."""
        if self._may_lack_ranges:
            if len(self._ask([(0, 1)])[0]) != 1:
                raise NoRangesError
            self._may_lack_ranges = False
        chunks = self._ask(ranges)
        for (begin, end), chunk in zip(ranges, chunks, strict=True):
            if len(chunk) > end - begin:
                raise NoRangesError
            if len(chunk) < end - begin:
                raise changed(self.url)
            count_bytes(len(chunk))
        return chunks

    def fetch_last(self, begin: int) -> bytes:
        """Return the bytes from a position to the end. ReadError where the file has become longer or shorter."""
        [chunk] = self._ask([(begin, self.size + 1)])
        if len(chunk) != self.size - begin:
            raise changed(self.url) if len(chunk) <= self.size + 1 - begin else NoRangesError
        count_bytes(len(chunk))
        return chunk

    def fetch_into(self, targets: Sequence[tuple[int, memoryview]]) -> None:
        """Fill each view with the bytes of the file from a position on."""
        pieces = [
            (begin + at, view[at : at + RANGE_BYTES])
            for begin, view in targets
            for at in range(0, len(view), RANGE_BYTES)
        ]
        for row in range(0, len(pieces), AT_ONCE):
            group = pieces[row : row + AT_ONCE]
            chunks = self.fetch([(begin, begin + len(view)) for begin, view in group])
            for (_, view), chunk in zip(group, chunks, strict=True):
                view[:] = chunk

    def _ask(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return what the store answers, after retries. Raises the errors of the store."""
        found = self._ask_once(ranges)
        for seconds in WAIT_SECONDS:
            failed = [row for row, chunk in enumerate(found) if isinstance(chunk, Exception)]
            if not failed or any(isinstance(found[row], LASTING) for row in failed):
                break
            time.sleep(seconds)
            for row, chunk in zip(failed, self._ask_once([ranges[row] for row in failed]), strict=True):
                found[row] = chunk
        if errors := [chunk for chunk in found if isinstance(chunk, Exception)]:
            raise errors[0]
        return [chunk for chunk in found if not isinstance(chunk, Exception)]

    def _ask_once(self, ranges: Sequence[ByteRange]) -> list[bytes | Exception]:
        begins, ends = [begin for begin, _ in ranges], [end for _, end in ranges]
        found: list[bytes | Exception] = self.system.cat_ranges(
            [self.path] * len(ranges), begins, ends, on_error="return"
        )
        return found


# Smaller files are read as a whole: a request takes about as long as this many bytes.
MIN_BYTES = 1 << 20
MAX_UNKNOWN_BYTES = 1 << 30  # of a file whose store does not give its size


def read_remote(
    file: RemoteFile, begin: int, size: int, known: Format | None, allocate: Allocate
) -> tuple[memoryview, int]:
    """Return `size` bytes from `begin`; where that is the whole file, only the parts that its reader needs.

    Also return the number of bytes before them that are left out. `known`: the format of the file. Raises
    ReadError where the file changes, and errors of the store.
    """
    try:
        if size <= MIN_BYTES:  # the bytes of one answer, which are of one version of the file
            target = allocate(size)
            target[:] = file.fetch_last(begin) if begin + size == file.size else file.fetch([(begin, begin + size)])[0]
            return target.toreadonly(), begin
        with file.unchanged():
            content, begin = read_range(file, begin, size, known, allocate)
        return content.toreadonly(), begin
    except NoRangesError:
        return read_stream(file, begin, size), begin


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
