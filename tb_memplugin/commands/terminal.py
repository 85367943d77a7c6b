"""What commands share: how a path is read, and how text is printed."""

from __future__ import annotations

import logging
import re
import sys
from typing import TYPE_CHECKING

from tb_memplugin.errors import InputError

if TYPE_CHECKING:
    from tb_memplugin.catalog import Listing

PATH = "a logdir, a run's folder, or a file that we read; - is the text of an error, on standard input"
STDIN = "standard input"


def listing_of(path: str) -> Listing:
    """Everything in there; what cannot be read is told on standard error."""
    from tb_memplugin.catalog import listing_of_path, listing_of_stream

    if path == "-":
        return listing_of_stream(sys.stdin.buffer, STDIN)
    # The log is for servers; here every problem is printed as a line of its own.
    logging.getLogger("tb_memplugin").setLevel(logging.ERROR)
    listing = listing_of_path(path)
    for problem in listing.problems:
        print(f"tb-memplugin: {printable(problem.file)}: {printable(problem.text)}", file=sys.stderr)
    return listing


def pattern_of(text: str | None) -> re.Pattern[str]:
    """What every id has, without a text. InputError where it is no regular expression."""
    try:
        return re.compile(text or "")
    except re.error as error:
        raise InputError("Not a regular expression", text or "", str(error)) from error


def printable(text: str) -> str:
    """Names come from files: a control character in one must not reach the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
