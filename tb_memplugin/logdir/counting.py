"""The bytes that are read of files, reported while they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CHUNK_BYTES = 16 << 20  # read between two reports; a disk takes some 10 ms

_advance: ContextVar[Callable[[int], None] | None] = ContextVar("_advance", default=None)


@contextmanager
def counting(advance: Callable[[int], None]) -> Iterator[None]:
    """Call `advance` with the number of bytes of each chunk that this thread reads."""
    token = _advance.set(advance)
    try:
        yield
    finally:
        _advance.reset(token)


def count_bytes(count: int) -> None:
    """Report bytes that were read."""
    if (advance := _advance.get()) is not None:
        advance(count)
