"""Byte ranges of a remote file: several at once, with retries, and refused where the file changes in between."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tb_memplugin.errors import ReadError
from tb_memplugin.formats import ByteRange
from tb_memplugin.logdir.counting import count_bytes
from tb_memplugin.logdir.remote import entries

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
        self.size = size or entries.size(self.system.info(self.path))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise ReadError where the file changes while the block reads it, or has changed since it was listed."""
        before = self._listed or self._stamp()
        yield
        if before != self._stamp():
            raise self.changed()

    def _stamp(self) -> str:
        for cached in (self.path, self.path.rpartition("/")[0]):  # listings of the folder, too
            self.system.invalidate_cache(cached)
        info = self.system.info(self.path)
        if entries.size(info) != self.size:
            raise self.changed()
        return entries.stamp(info)

    def changed(self) -> ReadError:
        return ReadError("the file changed while it was read", self.url, "open it again when it is complete")

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
                raise self.changed()
            count_bytes(len(chunk))
        return chunks

    def fetch_last(self, begin: int) -> bytes:
        """Return the bytes from a position to the end. ReadError where the file has become longer or shorter."""
        [chunk] = self._ask([(begin, self.size + 1)])
        if len(chunk) != self.size - begin:
            raise self.changed() if len(chunk) <= self.size + 1 - begin else NoRangesError
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
