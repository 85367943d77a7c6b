"""Recordings as CSV, with the headings and the quoting of the page's own."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import chain
from typing import BinaryIO

from tb_memplugin.model.recording import Recording
from tb_memplugin.views.export.export_table import cells
from tb_memplugin.views.export.rows import pieces

END = "\r\n"
FORMULA = re.compile(r"[=+\-@\t\r\n]")
NEEDS_QUOTES = re.compile(r'[",\r\n]')


def write_csv(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Headings, then a line for each row, as RFC 4180 has them. What is unknown is empty.

    Of at least one recording.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    tables = chain.from_iterable(map(pieces, recordings))
    first = next(tables)
    text.write(",".join(first) + END)
    # Texts are quoted once each, before they are spread over rows: the csv module would look at all of every row's.
    line = ",".join(["%s"] * len(first)) + END
    for piece in chain([first], tables):
        rows = zip(*(cells(column, cell, "") for column in piece.values()), strict=True)
        text.writelines(map(line.__mod__, rows))
    text.detach()  # writes what is left, and leaves the stream open


def cell(text: str) -> str:
    """Spreadsheets run a text that begins like a formula, and names come from whoever wrote the profile."""
    safe = f"'{text}" if FORMULA.match(text) else text
    return '"' + safe.replace('"', '""') + '"' if NEEDS_QUOTES.search(safe) else safe
