"""Separately readable parts of a file."""

from collections.abc import Callable
from typing import NamedTuple

from tb_memplugin.model.caveats import NoEventsCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording


class Origin(NamedTuple):
    """The run, the host and the file that a recording is from."""

    run: str
    host: str
    source: str


class NoEventsReason(NamedTuple):
    """The reason why a profile has no allocator events, and the remedy; `code` is stable, for programs."""

    code: NoEventsCode
    text: str
    remedy: str


class FilePart(NamedTuple):
    """A part of a file. `read` parses it alone, so damage in one part leaves the others readable."""

    title: str
    kind: RecordingKind
    source: str
    size: int  # bytes in the file
    read: Callable[[], list[Recording]]
    no_events_reason: Callable[[], NoEventsReason] | None = None  # called where `read` returns no recording
    content: bytes | memoryview | None = None  # of a program: parts of equal content are equal programs


def own(piece: memoryview) -> memoryview:
    """Return a piece that does not keep the rest of its file in memory: a copy, unless it is most of the file."""
    return piece if piece.nbytes > memoryview(piece.obj).nbytes // 2 else memoryview(bytes(piece))
