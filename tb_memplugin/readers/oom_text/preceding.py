"""The lines of a log before an error, in short: of the same worker, and repeated ones once."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from tb_memplugin.readers.oom_text.failure import Failure
from tb_memplugin.readers.oom_text.normalize import NormalizedText

MAX_LINES = 20
LINE_CHARS = 200
SEARCHED_CHARS = 20_000
NUMBER = re.compile(r"\d+")


def with_lines_before(failure: Failure, page: NormalizedText) -> Failure:
    """Add the last lines before that of an error, the oldest first."""
    end, begin = page.text.rfind("\n", 0, failure.at) + 1, page.begin_of_worker(failure.at)
    if end - begin > SEARCHED_CHARS:
        begin = page.text.find("\n", end - SEARCHED_CHARS, end) + 1 or end
    lines = tuple(_folded(page.text[begin:end].split("\n")))[-MAX_LINES:]
    return replace(failure, out_of_memory=replace(failure.out_of_memory, lines_before=lines))


def _folded(lines: list[str]) -> Iterator[str]:
    """Return the last of lines that follow each other and differ in their numbers alone, as those of steps do."""
    printable = ("".join(c if c.isprintable() else " " for c in line[:LINE_CHARS]).rstrip() for line in lines)
    for _, group in groupby(filter(None, printable), key=lambda line: NUMBER.sub("0", line)):
        *others, last = group
        yield f"{last} (and those before it, with other numbers)" if others else last  # a cut log has no count
