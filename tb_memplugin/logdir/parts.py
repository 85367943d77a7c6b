"""The parts of a large file that its reader needs, or its end with excerpts of the lines before it.

The parts are found by looking at their beginnings. A format's search, such as that of formats.XPLANE, is a generator:
it yields the ranges that it looks at, and is sent their bytes. It also yields a walk for each part, a generator that
returns the needed content of its part in pieces. Both raise ValueError where the file has no such structure, and are
independent of stores.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol, cast

from tb_memplugin.errors import ReadError, end_if_abandoned
from tb_memplugin.formats import ByteRange, FilePiece, Format, PartSearch, PartWalk

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


BLOCK_BYTES = 64 << 10  # some 20 bytes are looked at, and then mostly those after them
MAX_ROUNDS = 50  # of requests that wait for another; a file that needs more is read as a whole


Allocate = Callable[[int], memoryview]  # ReadError where memory is too small


class Ranges(Protocol):
    """A file whose ranges can be read."""

    size: int

    def fetch(self, ranges: Sequence[ByteRange]) -> Sequence[bytes]:
        """Return the bytes of each range."""

    def fetch_into(self, targets: Sequence[tuple[int, memoryview]]) -> None:
        """Fill each view with the bytes of the file from a position on."""


def read_range(
    file: Ranges, begin: int, size: int, known: Format | None, allocate: Allocate, min_bytes: int = 0
) -> tuple[memoryview, int]:
    """Return `size` bytes from `begin` after excerpts of what is before them, and the number of bytes left out.

    Of a whole file with `min_bytes` or more, only the parts that its reader needs. `known`: the format of the file.
    """
    if size == file.size >= min_bytes and (content := _read_needed(file, known, allocate)) is not None:
        return content, begin
    excerpts = _excerpts(file, begin, known)
    content = allocate(len(excerpts) + size)
    content[: len(excerpts)] = excerpts
    file.fetch_into([(begin, content[len(excerpts) :])])
    return content, max(begin - len(excerpts), 0)


def changed(path: str) -> ReadError:
    return ReadError("the file changed while it was read", path, "open it again when it is complete")


def _read_needed(file: Ranges, known: Format | None, allocate: Allocate) -> memoryview | None:
    """Return the parts of a file that its reader needs; None where its format or the file has no such parts."""
    if known is None or known.needed is None:
        return None
    search: Callable[[int], PartSearch] = _load(known.needed)
    sparse = SparseFile(file)
    try:
        pieces = sparse.run(search(file.size))
    except ValueError:
        return None
    content = sparse.content(pieces, allocate)
    count_bytes(max(0, file.size - len(content)))  # parts that are left out are done, too
    return content


class SparseFile:
    """The blocks of a file that have been read."""

    def __init__(self, file: Ranges) -> None:
        self._file = file
        self._blocks: dict[int, bytes] = {}
        self._rounds = 0

    def run(self, search: PartSearch) -> list[FilePiece]:
        """Return the pieces of all walks of a search. They go on side by side, so that they wait for the same requests.

        ValueError where one finds no structure, or needs too many requests.
        """
        started: list[PartSearch | PartWalk] = [search]
        found: dict[int, list[FilePiece]] = {}
        chunks: dict[int, bytes | None] = {0: None}
        while chunks:
            wanted: dict[int, ByteRange] = {}
            while chunks:
                number, chunk = chunks.popitem()
                try:
                    looked_at = self._advance(started[number], chunk)
                except StopIteration as done:
                    found[number] = done.value or []
                    continue
                if isinstance(looked_at, tuple):
                    wanted[number] = looked_at
                else:
                    chunks |= {len(started): None, number: b""}
                    started.append(looked_at)
            self._read(wanted.values())
            chunks = {number: self._bytes(*looked_at) for number, looked_at in wanted.items()}
        return [piece for number in sorted(found) for piece in found[number]]

    def content(self, pieces: Sequence[FilePiece], allocate: Allocate) -> memoryview:
        """Return the pieces, joined. Only blocks that no walk has looked at are read."""
        pieces = _joined(pieces)
        sizes = [len(piece) if isinstance(piece, bytes) else piece[1] - piece[0] for piece in pieces]
        content, at = allocate(sum(sizes)), 0
        missing: list[tuple[int, memoryview]] = []
        for piece, size in zip(pieces, sizes, strict=True):
            target = content[at : at + size]
            if isinstance(piece, bytes):
                target[:] = piece
            else:
                missing += self._copy(piece[0], target)
            at += size
        self._file.fetch_into(missing)
        return content

    def _advance(self, looking: PartSearch | PartWalk, chunk: bytes | None) -> ByteRange | PartWalk:
        """Go on for as long as blocks are looked at that were read. StopIteration at the end."""
        looked_at = next(looking) if chunk is None else looking.send(chunk)
        while isinstance(looked_at, tuple) and not self._missing(*looked_at):
            looked_at = looking.send(self._bytes(*looked_at))
        return looked_at

    def _missing(self, begin: int, end: int) -> list[int]:
        """Return the blocks of a range that were not read."""
        numbers = range(begin // BLOCK_BYTES, -(-end // BLOCK_BYTES))
        return [number for number in numbers if number not in self._blocks]

    def _read(self, ranges: Iterable[ByteRange]) -> None:
        """Read the blocks of ranges, all at once."""
        missing = sorted({number for begin, end in ranges for number in self._missing(begin, end)})
        if not missing:
            return
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise ValueError("too many parts")
        consecutive = cast(list[ByteRange], _joined([(number, number + 1) for number in missing]))
        runs = [(first * BLOCK_BYTES, min(end * BLOCK_BYTES, self._file.size)) for first, end in consecutive]
        for (begin, _), chunk in zip(runs, self._file.fetch(runs), strict=True):
            for at in range(0, len(chunk), BLOCK_BYTES):
                self._blocks[(begin + at) // BLOCK_BYTES] = chunk[at : at + BLOCK_BYTES]

    def _bytes(self, begin: int, end: int) -> bytes:
        first = begin // BLOCK_BYTES
        joined = b"".join(self._blocks[number] for number in range(first, -(-end // BLOCK_BYTES)))
        return joined[begin - first * BLOCK_BYTES : end - first * BLOCK_BYTES]

    def _copy(self, begin: int, target: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Copy the blocks that were read to a view of the file from `begin` on; yield the others, joined."""
        end, unread = begin + len(target), begin
        for number in range(begin // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
            if number in self._blocks:
                first, last = max(begin, number * BLOCK_BYTES), min(end, (number + 1) * BLOCK_BYTES)
                if unread < first:
                    yield unread, target[unread - begin : first - begin]
                target[first - begin : last - begin] = self._bytes(first, last)
                unread = last
        if unread < end:
            yield unread, target[unread - begin :]


def _joined(pieces: Sequence[FilePiece]) -> list[FilePiece]:
    """Return the pieces, with ranges that follow on one another joined, so that they take one request."""
    joined: list[FilePiece] = []
    for piece in pieces:
        before = joined[-1] if joined else b""
        if isinstance(piece, tuple) and isinstance(before, tuple) and piece[0] == before[1]:
            joined[-1] = before[0], piece[1]
        else:
            joined.append(piece)
    return joined


MAX_SEARCHED_BYTES = 2 << 30  # of the beginning; a sparse file has any size
RANGE_BYTES = 4 << 20  # a store answers some requests side by side faster than a large one


class Excerpts(Protocol):
    """Keeps the parts of a file that a format needs besides its end; the file is added in pieces."""

    def add(self, piece: bytes) -> None:
        """Search the next piece."""

    def content(self) -> bytes:
        """Return the excerpts of all pieces."""


def excerpts_of(known: Format | None) -> Excerpts | None:
    """Return new excerpts for a file of a format; None where it has none."""
    made: Excerpts | None = _load(known.excerpts)() if known is not None and known.excerpts else None
    return made


def _load(reference: str) -> Any:
    """Import what a format names as `module:name`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def _excerpts(file: Ranges, end: int, known: Format | None) -> bytes:
    found = excerpts_of(known) if end else None
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
