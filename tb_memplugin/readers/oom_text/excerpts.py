"""Excerpts of a long log from before its end: the start-up lines, and the first error of each worker.

A log of gigabytes is searched for a few words in pieces, as it is read; only text around them is matched.
"""

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Any

from tb_memplugin.readers.oom_text.message import marks_of
from tb_memplugin.readers.oom_text.messages import MESSAGES
from tb_memplugin.readers.oom_text.normalize import NormalizedText, worker_of
from tb_memplugin.readers.oom_text.startup import LINES

MIN_WORD = 4  # characters; "xit" of an exit code is at the end of a log
WINDOW_BYTES = 64 << 10  # of the text after a word that is searched for a message
BEFORE_BYTES = 2 << 10  # of the text before it
MAX_SEARCHES = 200  # for the line of a message, which may be one of many of its worker
PATTERNS = tuple(message.pattern for message in MESSAGES)
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
        after = 0
        for at in _line_starts(text, self._begin, end):
            line = text[at : at + LINE_BYTES].partition(b"\n")[0]
            if self._lines < MAX_LINES and _words(LINES).search(line):
                self._lines += 1
                self._kept.append(line)
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
            return text.find(b"\n", begin) + 1 or len(text)
        self._workers.add(worker)
        first = max(begin - BEFORE_BYTES, after)
        first = text.find(b"\n", first, begin) + 1 or first  # a whole line, where there is one
        self._kept.append(text[first : begin + WINDOW_BYTES])
        return begin + WINDOW_BYTES - BEFORE_BYTES


def _line(text: bytes, at: int) -> str:
    return text[at : at + LINE_BYTES].decode("utf-8", "replace")


def _has_message(text: bytes) -> bool:
    page = NormalizedText(text.decode("utf-8", "replace"))
    return any(True for message in MESSAGES for _ in message.find(page))


@cache
def _words(*patterns: tuple[str, ...]) -> Any:
    """Return an expression of RE2 that finds a word of each pattern in bytes, ten times as fast as one by one."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    words = {word.strip() for some in patterns for source in some for word in marks_of(source)}
    long = sorted(word for word in words if len(word.replace(" ", "")) >= MIN_WORD)
    return re2.compile(b"|".join(re2.escape(word.encode()).replace(b"\\ ", rb"\s+") for word in long), options)


def _line_starts(text: bytes, begin: int, end: int) -> Iterator[int]:
    """Yield where the lines begin that have a word of a message or of a start-up line."""
    words, at = _words(LINES, PATTERNS), begin
    while found := words.search(text, at, end):
        word = found.start()
        first = max(word - LINE_BYTES, 0)
        yield max(text.rfind(b"\n", first, word) + 1, first)
        line_end = text.find(b"\n", word, word + LINE_BYTES)
        at = line_end if line_end >= 0 else word + LINE_BYTES


def excerpts_of(text: bytes | memoryview) -> bytes:
    """Return the excerpts of a text in memory."""
    found = LogExcerpts()
    for at in range(0, len(text), PIECE_BYTES):
        found.add(text[at : at + PIECE_BYTES])
    return found.content()
