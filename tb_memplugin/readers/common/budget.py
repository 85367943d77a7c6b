"""The memory and the work that reading a file may take: a constant plus a multiple of its size on disk.

A few bytes of a file may stand for a row of a table, an object of a pickle, or a thousand bytes of content. So before a
reader allocates memory for a file, such as for its decompressed content, it charges that memory to the file's budget.
Work is counted in bytes that are read or allocated, about a nanosecond of processor time each: parts of a file may
refer to each other, so that a small file is read again and again.
"""

import zlib
from collections.abc import Callable, Iterator
from contextvars import copy_context
from threading import Lock
from typing import TypeVar

import numpy as np

from tb_memplugin.errors import InputError, end_if_abandoned
from tb_memplugin.free_memory import require
from tb_memplugin.sizes import bytes_text

GZIP_MAGIC = b"\x1f\x8b"

# The files of tests, demo_logdir and benchmarks take at most a quarter of each limit, even without this constant.
BASE_BYTES = 256 << 20
MULTIPLE = 64
COMPRESSED_MULTIPLE = 256
# The constant for the decompressed content alone. Real files of more than 100 KB decompress to at most 20 times that.
CONTENT_BASE_BYTES = 64 << 20
CONTENT_MULTIPLE = 64
# A second for each megabyte. Real files take at most a tenth; small ones, with this constant, a hundredth.
BASE_WORK = 2 << 30
WORK_MULTIPLE = 1000
PYTHON = 1000  # the work of a byte that is decoded by a loop in Python


class ReadBudget:
    """Bytes that the reader of one file may still allocate, and its work. Methods may be called from any thread.

    Memory that is refused is not counted, so that a damaged part of a file leaves the others readable; work is.
    """

    def __init__(self, data: bytes | memoryview, path: str) -> None:
        """`data`: the file's content, as it is on disk."""
        self.path = path
        self.size = len(data)
        multiple = COMPRESSED_MULTIPLE if bytes(data[:2]) == GZIP_MAGIC else MULTIPLE
        self.limit = BASE_BYTES + multiple * self.size
        self.work_limit = BASE_WORK + WORK_MULTIPLE * self.size
        self.used = self.worked = 0
        self._lock = Lock()

    @property
    def left(self) -> int:
        """Return how many bytes may still be charged."""
        return self.limit - self.used

    def charge(self, nbytes: int) -> None:
        """Count bytes that are about to be allocated. InputError beyond the limit, ReadError without free memory."""
        with self._lock:
            if nbytes > self.left:
                raise self.exceeded(self.used + nbytes)
            self.used += nbytes
        self.work(nbytes)
        require(nbytes, self.path)

    def work(self, nbytes: int) -> None:
        """Count bytes that are about to be read. InputError beyond the limit, Abandoned where nobody waits."""
        end_if_abandoned()
        with self._lock:
            self.worked += int(nbytes)
        if self.worked > self.work_limit:
            what = f"takes too long to read: its {bytes_text(self.size)} refer to each other again and again"
            raise InputError(what, self.path, "is it damaged? Copy or save it again")

    def check(self, nbytes: int) -> None:
        """Raise InputError if `nbytes` would exceed the limit. They are not counted, because they are soon freed."""
        if nbytes > self.left:
            raise self.exceeded(self.used + nbytes)
        self.work(nbytes)

    def exceeded(self, nbytes: int, limit: int | None = None) -> InputError:
        """Return the error for a file that would take `nbytes` or more. `limit` is that of the content, if exceeded."""
        what = f"too large to read: its {bytes_text(self.size)} would take {bytes_text(nbytes)} of memory or more"
        remedy = f"files of this size may take {bytes_text(limit or self.limit)}; is it damaged? Copy or save it again"
        return InputError(what, self.path, remedy)


CHUNK_BYTES = 1 << 20
# zlib copies the rest of its input at the end of each member, and a file may have a member every 20 bytes.
INPUT_BYTES = 1 << 15
GZIP_FORMAT = 16 + zlib.MAX_WBITS  # zlib then checks the length and the checksum, too


def decompress(data: bytes | memoryview, budget: ReadBudget) -> bytes | memoryview:
    """Return the content of a file: `data` itself, or if that is gzip, the decompressed bytes.

    The content is charged to the budget. Raises InputError where it is too large or the gzip stream is damaged.
    """
    if bytes(data[:2]) != GZIP_MAGIC:
        return data
    limit, done = min(CONTENT_BASE_BYTES + CONTENT_MULTIPLE * budget.size, budget.left), 0
    content = np.empty(min(int.from_bytes(data[-4:], "little"), limit), np.uint8)  # the file ends with its length
    try:
        for chunk in _chunks(memoryview(data)):
            begin, done = done, done + len(chunk)
            if done > limit:
                raise budget.exceeded(done, limit)
            if done > len(content):  # there are several members
                content = np.concatenate([content[:begin], np.empty(min(2 * done, limit) - begin, np.uint8)])
            content[begin:done] = np.frombuffer(chunk, np.uint8)
    except (EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error})", budget.path, "copy or save it again") from error
    budget.charge(done)
    return content[:done].data.toreadonly()


def _chunks(data: memoryview) -> Iterator[bytes]:
    """Yield the content of all members, which may be padded with zeros. EOFError where the last one is cut short."""
    member = zlib.decompressobj(GZIP_FORMAT)
    for begin in range(0, len(data), INPUT_BYTES):
        rest: bytes | memoryview = data[begin : begin + INPUT_BYTES]
        while len(rest):
            if member.eof:
                if not (rest := bytes(rest).lstrip(b"\0")):
                    break
                member = zlib.decompressobj(GZIP_FORMAT)
            yield member.decompress(rest, CHUNK_BYTES)
            rest = member.unused_data if member.eof else member.unconsumed_tail
    while not member.eof:
        if not (chunk := member.decompress(b"", CHUNK_BYTES)):
            raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        yield chunk


First = TypeVar("First")
Second = TypeVar("Second")


class BudgetShare:
    """Half of the bytes that a budget has left, for one of two loops that run side by side."""

    def __init__(self, budget: ReadBudget) -> None:
        self._budget = budget
        self.left = budget.left // 2

    def charge(self, nbytes: int) -> None:
        """Count bytes that are about to be allocated. InputError beyond this half."""
        if nbytes > self.left:
            raise self._budget.exceeded(self._budget.used + nbytes)
        self.left -= nbytes
        self._budget.charge(nbytes)

    def work(self, nbytes: int) -> None:
        """Count bytes that are about to be read. InputError beyond the limit of the whole."""
        self._budget.work(nbytes)


def at_once(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Return both results; `second` runs in a thread, which has ended when this returns or raises."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(copy_context().run, second)
        return first(), other.result()
