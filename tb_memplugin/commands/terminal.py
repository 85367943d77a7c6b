"""What commands share: how a path is read, and how text is printed."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

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


def printable(text: str) -> str:
    """Names come from files: a control character in one must not reach the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
