"""Exported tables, one row per allocation, as CSV, JSON and Parquet.

Every kind of recording has the same columns, so that one file can contain several; missing facts are unknown values.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.isolate import Failed, each
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.recording.columns import EXPORTED, ChosenRows, Numbers
from tb_memplugin.questions.recording.stack_texts import StackCells, truncate
from tb_memplugin.questions.recording.summary import summary

ExportColumn = Numbers | Text
ExportTable = dict[str, ExportColumn]  # of equal lengths, by name
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


def write_json(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Write `{"recordings": [{..., "rows": [{"name": ..., "size_bytes": ...}, ...]}]}`; unknown values are null."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    before = '{"recordings": [\n'
    for recording in recordings:
        fields = json.dumps(summary(recording), allow_nan=False)
        text.write(f'{before}{fields.removesuffix("}")}, "rows": [')
        _write_rows(pieces(recording), text)
        text.write("\n]}")
        before = ",\n"
    text.write("\n]}\n")
    text.detach()  # flushes, and leaves the stream open


def write_json_tables(tables: Iterator[ExportTable], stream: BinaryIO) -> None:
    """Write a list of objects, one a line; unknown values are null."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    text.write("[")
    _write_rows(tables, text)
    text.write("\n]\n")
    text.detach()  # flushes, and leaves the stream open


def _write_rows(tables: Iterator[ExportTable], text: TextIO) -> None:
    """Write one row per line."""
    before = "\n"
    for piece in tables:
        # A template for numbers, and for texts that are JSON already.
        row = "{" + ", ".join(f'"{heading}": %s' for heading in piece) + "}"
        rows = zip(*(export_cells(column, json.dumps, "null") for column in piece.values()), strict=True)
        for first in islice(rows, 1):
            text.write(before + row % first)
        text.writelines(map(f",\n{row}".__mod__, rows))
        before = ",\n"


SUMMARIES = "tb_memplugin"  # the key in the file's metadata of the answer of `summary --json`


def write_parquet(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Write one row group per piece; unknown values are null. There must be at least one recording."""
    summaries = json.dumps({"recordings": [summary(recording) for recording in recordings]}, allow_nan=False)
    write_parquet_tables((piece for recording in recordings for piece in pieces(recording)), summaries, stream)


def write_parquet_tables(tables: Iterator[ExportTable], metadata: str, stream: BinaryIO) -> None:
    """Write one row group per table. All have the same columns; `metadata` is a JSON text about them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches = (pa.record_batch({name: _array(pa, column) for name, column in table.items()}) for table in tables)
    first = next(batches)
    # With Arrow's schema in the file, texts would be read as dictionaries that differ between row groups, and Arrow
    # cannot group by those.
    with pq.ParquetWriter(stream, first.schema, store_schema=False) as writer:
        writer.add_key_value_metadata({SUMMARIES: metadata})
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _array(pa: Any, column: ExportColumn) -> Any:
    if isinstance(column, Text):
        texts, code = distinct_texts(column)
        return pa.DictionaryArray.from_arrays(code, pa.array(texts, pa.string()))
    return pa.array(column.values, mask=~column.known)


# Rows per piece. Few enough that as many different long stacks fit in memory as text; enough that the cost per piece
# does not matter, and that Parquet, where each piece is a row group, is read fast.
PIECE_ROWS = 16_384


def pieces(recording: Recording) -> Iterator[ExportTable]:
    """Yield the table of a recording in pieces of some rows; at least one piece, which may be empty."""
    stacks, count = StackCells(recording.stacks), len(recording.allocations)
    for begin in range(0, max(count, 1), PIECE_ROWS):
        rows = ChosenRows(recording, np.arange(begin, min(begin + PIECE_ROWS, count)), stacks)
        yield {name: column.cells(rows) for name, column in EXPORTED.items()}


def exportable(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Failed]]:
    """Return the recordings whose table can be made, and a problem for each other one.

    The first piece needs every analysis. These are memoized, so making it twice costs little.
    """
    return each(recordings, lambda recording: (summary(recording), next(pieces(recording)), recording)[-1])


def export_cells(column: ExportColumn, encode: Callable[[str], str], unknown: str) -> list[Any]:
    """Return each row's cell: a number, or an encoded text. Each distinct text is encoded once."""
    if isinstance(column, Text):
        texts, code = distinct_texts(column)
        cells = _objects([encode(text) for text in texts])[code]
    else:
        values = column.values
        is_boolean = values.dtype == np.bool_
        cells = _objects(["false", "true"])[values.astype(np.int8)] if is_boolean else values.astype(object)
        cells[~column.known] = unknown
    row_by_row: list[Any] = cells.tolist()
    return row_by_row


def distinct_texts(column: Text) -> tuple[list[str], I32]:
    """Return the distinct texts of a column, cut to the size of a cell, and the index of each row's text."""
    codes, code = np.unique(column.codes, return_inverse=True)
    texts = [truncate(column.strings[i]) if i >= 0 else "" for i in codes.tolist()]
    return texts, code.astype(np.int32)


def _objects(texts: list[str]) -> npt.NDArray[np.object_]:
    return np.array(texts, dtype=object)
