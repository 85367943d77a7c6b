"""Recordings as CSV, with the headings and the quoting of the page's own."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import chain
from typing import BinaryIO

from tb_memplugin.recording import Recording
from tb_memplugin.views.cells import cells
from tb_memplugin.views.export import pieces

FORMULA = re.compile(r"[=+\-@\t\r\n]")


def write_csv(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Headings, then a line for each row, as RFC 4180 has them. What is unknown is empty.

    Of at least one recording.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    lines = csv.writer(text)
    tables = chain.from_iterable(map(pieces, recordings))
    first = next(tables)
    lines.writerow(first)
    for piece in chain([first], tables):
        lines.writerows(zip(*(cells(column, harmless, "") for column in piece.values()), strict=True))
    text.detach()  # writes what is left, and leaves the stream open


def harmless(text: str) -> str:
    """Spreadsheets run a text that begins like a formula, and names come from whoever wrote the profile."""
    return f"'{text}" if FORMULA.match(text) else text
