"""Recordings as JSON: the summary of each, as in `summary --json`, and its rows."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import islice
from typing import BinaryIO, TextIO

from tb_memplugin.model.recording import Recording
from tb_memplugin.views.export.export_table import export_cells
from tb_memplugin.views.export.rows import pieces
from tb_memplugin.views.shared.summary import summary


def write_json(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Write `{"recordings": [{..., "rows": [{"name": ..., "size_bytes": ...}, ...]}]}`; unknown values are null."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    before = '{"recordings": [\n'
    for recording in recordings:
        fields = json.dumps(summary(recording), allow_nan=False)
        text.write(f'{before}{fields.removesuffix("}")}, "rows": [')
        _write_rows(recording, text)
        text.write("\n]}")
        before = ",\n"
    text.write("\n]}\n")
    text.detach()  # flushes, and leaves the stream open


def _write_rows(recording: Recording, text: TextIO) -> None:
    """Write one row per line."""
    before = "\n"
    for piece in pieces(recording):
        # A template for numbers, and for texts that are JSON already.
        row = "{" + ", ".join(f'"{heading}": %s' for heading in piece) + "}"
        rows = zip(*(export_cells(column, json.dumps, "null") for column in piece.values()), strict=True)
        for first in islice(rows, 1):
            text.write(before + row % first)
        text.writelines(map(f",\n{row}".__mod__, rows))
        before = ",\n"
