"""The memory that reading a file may take: a constant plus a multiple of its size on disk.

A few bytes of a file may stand for a row of a table, an object of a pickle, or a thousand bytes of content. So what a
reader makes of a file is charged to its budget before it is allocated.
"""

from __future__ import annotations

from threading import Lock

from tb_memplugin.errors import InputError
from tb_memplugin.free_memory import require
from tb_memplugin.sizes import bytes_text

GZIP_MAGIC = b"\x1f\x8b"

# The files of tests, of demo_logdir and of benchmarks take at most a quarter of each, without the constant.
BASE_BYTES = 256 << 20
MULTIPLE = 64
COMPRESSED_MULTIPLE = 256
# Of these, for the decompressed content alone. Real files of more than 100 KB decompress to at most 20 times that.
CONTENT_BASE_BYTES = 64 << 20
CONTENT_MULTIPLE = 64


class ReadBudget:
    """Bytes that the reader of one file may still allocate. Methods may be called from any thread.

    A charge that is refused is not counted, so that a damaged part of a file leaves the others readable.
    """

    def __init__(self, data: bytes | memoryview, path: str) -> None:
        """`data`: the file's content, as it is on disk."""
        self.path = path
        self.size = len(data)
        multiple = COMPRESSED_MULTIPLE if bytes(data[:2]) == GZIP_MAGIC else MULTIPLE
        self.limit = BASE_BYTES + multiple * self.size
        self.used = 0
        self._lock = Lock()

    @property
    def left(self) -> int:
        """Return how many bytes may still be charged."""
        return self.limit - self.used

    @property
    def content_limit(self) -> int:
        """Return how many bytes the file may decompress to."""
        return min(CONTENT_BASE_BYTES + CONTENT_MULTIPLE * self.size, self.left)

    def charge(self, nbytes: int) -> None:
        """Count bytes that are about to be allocated. InputError beyond the limit, ReadError without free memory."""
        with self._lock:
            if nbytes > self.left:
                raise self.exceeded(self.used + nbytes)
            self.used += nbytes
        require(nbytes, self.path)

    def check(self, nbytes: int) -> None:
        """Raise InputError where `nbytes`, which are soon free again, would exceed the limit."""
        if nbytes > self.left:
            raise self.exceeded(self.used + nbytes)

    def exceeded(self, nbytes: int, limit: int | None = None) -> InputError:
        """Return the error for a file that would take `nbytes`, or more. `limit`: of its content, if not of all."""
        what = f"too large to read: its {bytes_text(self.size)} would take {bytes_text(nbytes)} of memory or more"
        remedy = f"files of this size may take {bytes_text(limit or self.limit)}; is it damaged? Copy or save it again"
        return InputError(what, self.path, remedy)
