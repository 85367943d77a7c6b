"""Recordings as JSON: for each what `summary --json` says of it, and its rows."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import islice
from typing import BinaryIO, TextIO

from tb_memplugin.model.recording import Recording
from tb_memplugin.views.export.export_table import cells
from tb_memplugin.views.export.rows import pieces
from tb_memplugin.views.shared.summary import summary


def write_json(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """`{"recordings": [{..., "rows": [{"name": ..., "size_bytes": ...}, ...]}]}`. What is unknown is null."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    before = '{"recordings": [\n'
    for recording in recordings:
        summed = json.dumps(summary(recording), allow_nan=False)
        text.write(f'{before}{summed.removesuffix("}")}, "rows": [')
        _write_rows(recording, text)
        text.write("\n]}")
        before = ",\n"
    text.write("\n]}\n")
    text.detach()  # writes what is left, and leaves the stream open


def _write_rows(recording: Recording, text: TextIO) -> None:
    """Each on a line of its own."""
    before = "\n"
    for piece in pieces(recording):
        # To be filled in with numbers, and with texts that are JSON already.
        row = "{" + ", ".join(f'"{heading}": %s' for heading in piece) + "}"
        rows = zip(*(cells(column, json.dumps, "null") for column in piece.values()), strict=True)
        for first in islice(rows, 1):
            text.write(before + row % first)
        text.writelines(map(f",\n{row}".__mod__, rows))
        before = ",\n"
