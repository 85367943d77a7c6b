"""The parts of a profile that its readers need, found without reading the others.

Events of devices are most of a large profile. Readers need only those that are executions of programs, and whether a
plane has any event. They need the host's events if any of these is an allocator's. The pieces that are found here make
a valid, smaller XSpace with the same answers. Damage in the other parts has no effect.
"""

from collections.abc import Generator
from typing import NamedTuple, TypeVar

from tb_memplugin.formats import ByteRange, FilePiece, PartSearch, PartWalk
from tb_memplugin.readers.xplane.planes import ALLOCATION, DEALLOCATION, HOST_PLANE, METADATA_PLANE
from tb_memplugin.readers.xplane.spans import MODULES_LINE

Result = TypeVar("Result")
Looking = Generator[ByteRange, bytes, Result]  # yields ranges of the file, and is sent their bytes

# Smaller lines are kept, because skipping a line costs a request.
MIN_SKIPPED_BYTES = 512 << 10
HOST, PROGRAMS = HOST_PLANE.encode(), METADATA_PLANE.encode()
ALLOCATOR_EVENTS = (ALLOCATION.encode(), DEALLOCATION.encode())
MAX_NAME_BYTES = 4096
MAX_FIELDS = 16  # fields before a line's first event, or before a plane's first line
HEAD_BYTES = 20  # a tag and a length take at most 10 each
SPACE_PLANES, NAME, PLANE_LINES, LINE_EVENTS = 1, 2, 3, 4
VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5


class Item(NamedTuple):
    """A field of a message: the beginnings of the field and of its content, and the end of both."""

    number: int
    form: int
    begin: int
    content: int
    end: int

    @property
    def whole(self) -> ByteRange:
        return self.begin, self.end


def needed_parts(size: int) -> PartSearch:
    """Yield a walk through each plane of an XSpace of `size` bytes. ValueError where it is none."""
    at = 0
    while at < size:
        item = yield from _item(at, size)
        yield _plane(item) if item.number == SPACE_PLANES else _kept(item)
        at = item.end


def _kept(item: Item) -> PartWalk:
    yield from ()
    return [item.whole]


def _plane(plane: Item) -> PartWalk:
    """Return a plane whose long lines end with their first event, except for the lines that are read."""
    if plane.form != LENGTH_DELIMITED:
        raise ValueError("a plane is damaged")
    if plane.end - plane.content < MIN_SKIPPED_BYTES:
        return [plane.whole]
    at, name = plane.content, b""
    pieces: list[FilePiece] = []
    while at < plane.end:
        item = yield from _item(at, plane.end)
        if item.number == NAME:
            name = yield from _text(item)
        if name == PROGRAMS:
            return [plane.whole]
        if item.number > PLANE_LINES:
            break  # names and stats, which are many small fields, and follow the lines
        pieces += (yield from _line(item)) if item.number == PLANE_LINES and name else [item.whole]
        at = item.end
    if name == HOST:
        names = yield at, plane.end
        if any(event in names for event in ALLOCATOR_EVENTS):
            return [plane.whole]
    pieces.append((at, plane.end))
    size = sum(len(piece) if isinstance(piece, bytes) else piece[1] - piece[0] for piece in pieces)
    return [_head(SPACE_PLANES, size), *pieces]


def _line(line: Item) -> PartWalk:
    """Return a line up to its first event, or all of it where it is short or named MODULES_LINE."""
    if line.form != LENGTH_DELIMITED or line.end - line.begin < MIN_SKIPPED_BYTES:
        return [line.whole]
    at, name = line.content, None
    for _ in range(MAX_FIELDS):
        item = yield from _item(at, line.end)
        at = item.end
        if item.number == NAME:
            name = yield from _text(item)
        if item.number == LINE_EVENTS and name not in (None, MODULES_LINE.encode()):
            return [_head(PLANE_LINES, at - line.content), (line.content, at)]
        if item.number == LINE_EVENTS or at == line.end:
            break
    return [line.whole]


def _item(begin: int, end: int) -> Looking[Item]:
    """Look at the field that begins here. ValueError where there is none before `end`."""
    head = yield begin, min(begin + HEAD_BYTES, end)
    tag, used = _varint(head, 0)
    number, form = tag >> 3, tag & 7
    content, size = begin + used, {FIXED64: 8, FIXED32: 4}.get(form, 0)
    if form in (VARINT, LENGTH_DELIMITED):
        value, after = _varint(head, used)
        content, size = (begin + after, value) if form == LENGTH_DELIMITED else (content, after - used)
    if not number or (not size and form != LENGTH_DELIMITED) or content + size > end:
        raise ValueError(f"not a field at byte {begin}")
    return Item(number, form, begin, content, content + size)


def _text(item: Item) -> Looking[bytes]:
    if item.form != LENGTH_DELIMITED or item.end - item.content > MAX_NAME_BYTES:
        raise ValueError(f"not a name at byte {item.begin}")
    if item.content == item.end:
        return b""
    return (yield item.content, item.end)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number is damaged")


def _head(number: int, size: int) -> bytes:
    """Return the tag and the length of a field."""
    head = [number << 3 | LENGTH_DELIMITED]
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*head, size))
