"""Recordings as CSV, with the headings and the quoting that the page uses."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO

from tb_memplugin.model.recording import Recording
from tb_memplugin.views.export.export_table import ExportTable, export_cells
from tb_memplugin.views.export.rows import pieces

LINE_END = "\r\n"
# Operators, also full-width, small and minus sign, which Excel reads like those of ASCII; and what it skips before
# them: spaces, control characters, and characters without a width. As in base/csv.ts.
FORMULA = re.compile(
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]"
)
NEEDS_QUOTES = re.compile(r'[",\r\n]')


def write_csv(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Write headings, then one line per row, as in RFC 4180; unknown values are empty.

    There must be at least one recording.
    """
    write_csv_tables(chain.from_iterable(map(pieces, recordings)), stream)


def write_csv_tables(tables: Iterator[ExportTable], stream: BinaryIO) -> None:
    """Write the headings of the first table, then one line per row of each. All have the same columns."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    first = next(tables)
    text.write(",".join(first) + LINE_END)
    # Each distinct text is quoted once. The csv module would examine the texts of every row.
    line = ",".join(["%s"] * len(first)) + LINE_END
    for piece in chain([first], tables):
        rows = zip(*(export_cells(column, csv_cell, "") for column in piece.values()), strict=True)
        text.writelines(map(line.__mod__, rows))
    text.detach()  # flushes, and leaves the stream open


def csv_cell(text: str) -> str:
    """Quote a text, and disarm formulas: spreadsheets would run them, and names in a profile are not trusted."""
    safe = f"'{text}" if FORMULA.match(text) else text
    return '"' + safe.replace('"', '""') + '"' if NEEDS_QUOTES.search(safe) else safe
