"""Files of which only the end is read, with excerpts of what is before it: logs, local and in remote stores."""

from importlib import import_module
from typing import Protocol

from tb_memplugin.errors import end_if_abandoned
from tb_memplugin.formats import Format
from tb_memplugin.logdir.parts import CHUNK_BYTES, Allocate, Ranges

MAX_SEARCHED_BYTES = 2 << 30  # of the beginning; a sparse file has any size
RANGE_BYTES = 4 << 20  # a store answers some requests side by side faster than a large one


class Excerpts(Protocol):
    """Keeps the parts of a file that a format needs besides its end; the file is added in pieces."""

    def add(self, piece: bytes) -> None:
        """Search the next piece."""

    def content(self) -> bytes:
        """Return the excerpts of all pieces."""


def excerpts_of(known: Format) -> Excerpts | None:
    """Return new excerpts for a file of a format; None where it has none."""
    if known.excerpts is None:
        return None
    module, _, name = known.excerpts.partition(":")
    made: Excerpts = getattr(import_module(module), name)()
    return made


def read_end(file: Ranges, begin: int, size: int, known: Format | None, allocate: Allocate) -> tuple[memoryview, int]:
    """Return `size` bytes from `begin` after excerpts of what is before them, and the number of bytes left out."""
    excerpts = _excerpts(file, begin, known)
    content = allocate(len(excerpts) + size)
    content[: len(excerpts)] = excerpts
    file.fetch_into([(begin, content[len(excerpts) :])])
    return content, max(begin - len(excerpts), 0)


def _excerpts(file: Ranges, end: int, known: Format | None) -> bytes:
    found = excerpts_of(known) if known is not None and end else None
    if found is None:
        return b""
    end = min(end, MAX_SEARCHED_BYTES)
    for begin in range(0, end, CHUNK_BYTES):
        end_if_abandoned()
        chunk_end = min(begin + CHUNK_BYTES, end)
        ranges = [(at, min(at + RANGE_BYTES, chunk_end)) for at in range(begin, chunk_end, RANGE_BYTES)]
        for piece in file.fetch(ranges):
            found.add(piece)
    excerpts = found.content()
    return excerpts and excerpts + b"\n"
