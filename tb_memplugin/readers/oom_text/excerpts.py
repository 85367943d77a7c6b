"""Excerpts of a long log from before its end: the start-up lines, and the first error of each worker.

A log of gigabytes is searched for a few words in pieces, as it is read; only text around them is matched.
"""

from bisect import bisect_left
from collections.abc import Iterator

from tb_memplugin.readers.oom_text.messages import MESSAGES
from tb_memplugin.readers.oom_text.normalize import NormalizedText, worker_of

# Every message has one of these, except for some about host memory, which ends a run and is at the end of its log.
ERRORS = (
    b"rror", b"ERROR", b"ail", b"xceed", b"EXHAUSTED", b"OOM", b"OUT_OF_", b"ut of memory", b"ot enough", b"could not",
    b"reduce memory", b"BufferAssignment", b"InUse", b"beyond", b"ends at", b"Accessed Bytes", b"out of bound",
    b"TooBig",
)  # fmt: skip
STARTUP = (
    b"total_gpu_memory", b"weights take", b"oading took", b"weights took", b"KV cache memory:", b"CUDA graph memory",
    b"Graph capturing finished", b"on startup", b"avail mem=", b"KV Cache is allocated", b"mem usage=",
    b"mem_fraction_static=", b"total_hbm_", b"Actual usage is",
)  # fmt: skip
WINDOW_BYTES = 64 << 10  # of the text after a word that is searched for a message
BEFORE_BYTES = 2 << 10  # of the text before it
MAX_SEARCHES = 200  # for the line of a message, which may be one of many of its worker
NEWLINE = ord("\n")
MAX_LINES = 1_000  # of start-up lines
LINE_BYTES = 2_000
PIECE_BYTES = 4 << 20


class LogExcerpts:
    """The excerpts of a text that is added in pieces. `content` is at most some megabytes."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._rest = b""
        self._workers: set[str] = set()
        self._begin = 0  # of what is not searched in the rest
        self._lines = 0
        self._searches = MAX_SEARCHES

    def add(self, piece: bytes | memoryview) -> None:
        """Search a piece, except for its end, which is searched with the next one."""
        text = self._rest + bytes(piece)
        end = max(len(text) - WINDOW_BYTES, self._begin)
        self._search(text, end)
        kept = max(end - BEFORE_BYTES, 0)
        self._rest, self._begin = text[kept:], end - kept

    def content(self) -> bytes:
        """Return the excerpts of all pieces."""
        self._search(self._rest, len(self._rest))
        self._rest, self._begin = b"", 0
        return b"\n".join(self._kept)

    def _search(self, text: bytes, end: int) -> None:
        for at in sorted(_line_starts(text, STARTUP, self._begin, end)):
            self._keep_line(text, at)
        after = 0
        for at in sorted(_line_starts(text, ERRORS, self._begin, end)):
            if at >= after and self._searches and worker_of(_line(text, at)) not in self._workers:
                after = self._search_window(text, at, after)

    def _search_window(self, text: bytes, at: int, after: int) -> int:
        """Keep the first message from a line on, if it is its worker's first. Return where the search goes on."""
        at = max(at - BEFORE_BYTES, after, 0)
        window = text[at : at + WINDOW_BYTES]
        if not _has_message(window):
            return at + WINDOW_BYTES - BEFORE_BYTES
        self._searches -= 1
        ends = [end for end in range(len(window)) if window[end] == NEWLINE] + [len(window)]
        begin = (
            at + ([0] + [end + 1 for end in ends])[bisect_left(ends, True, key=lambda end: _has_message(window[:end]))]
        )
        worker = worker_of(_line(text, begin))
        if worker in self._workers:
            return begin + 1
        self._workers.add(worker)
        self._kept.append(text[max(begin - BEFORE_BYTES, after) : begin + WINDOW_BYTES])
        return begin + WINDOW_BYTES - BEFORE_BYTES

    def _keep_line(self, text: bytes, at: int) -> None:
        if self._lines < MAX_LINES:
            self._lines += 1
            line_end = text.find(b"\n", at, at + LINE_BYTES)
            self._kept.append(text[at : line_end if line_end >= 0 else at + LINE_BYTES])


def _line(text: bytes, at: int) -> str:
    return text[at : at + LINE_BYTES].decode("utf-8", "replace")


def _has_message(text: bytes) -> bool:
    page = NormalizedText(text.decode("utf-8", "replace"))
    return any(True for message in MESSAGES for _ in message.find(page))


def _line_starts(text: bytes, words: tuple[bytes, ...], begin: int, end: int) -> set[int]:
    """Return where the lines begin that have one of the words."""
    found = set()
    for word in words:
        at = text.find(word, begin, end)
        while at >= 0:
            found.add(max(text.rfind(b"\n", max(at - LINE_BYTES, 0), at) + 1, at - LINE_BYTES, 0))
            line_end = text.find(b"\n", at, end)
            at = text.find(word, line_end, end) if line_end >= 0 else -1
    return found


def excerpts_of(text: bytes | memoryview) -> bytes:
    """Return the excerpts of a text in memory."""
    found = LogExcerpts()
    for piece in _pieces(text):
        found.add(piece)
    return found.content()


def _pieces(text: bytes | memoryview) -> Iterator[bytes | memoryview]:
    for at in range(0, len(text), PIECE_BYTES):
        yield text[at : at + PIECE_BYTES]
