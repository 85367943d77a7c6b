"""Recordings as Parquet, written by pyarrow, which is an optional dependency."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.views.export.export_table import ExportColumn, ExportTable, Numbers, distinct_texts
from tb_memplugin.views.export.rows import pieces
from tb_memplugin.views.shared.summary import summary

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARIES = "tb_memplugin"  # the key in the file's metadata of the answer of `summary --json`


def can_write_parquet() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """Write one row group per piece; unknown values are null. There must be at least one recording."""
    summaries = json.dumps({"recordings": [summary(recording) for recording in recordings]}, allow_nan=False)
    write_parquet_tables((piece for recording in recordings for piece in pieces(recording)), summaries, stream)


def write_parquet_tables(tables: Iterator[ExportTable], metadata: str, stream: BinaryIO) -> None:
    """Write one row group per table. All have the same columns; `metadata` is a JSON text about them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches = (_batch(pa, table) for table in tables)
    first = next(batches)
    # With Arrow's schema in the file, texts would be read as dictionaries that differ between row groups, and Arrow
    # cannot group by those.
    with pq.ParquetWriter(stream, first.schema, store_schema=False) as writer:
        writer.add_key_value_metadata({SUMMARIES: metadata})
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _batch(pa: Any, piece: ExportTable) -> pa.RecordBatch:
    return pa.record_batch({name: _array(pa, column) for name, column in piece.items()})


def _array(pa: Any, column: ExportColumn) -> pa.Array:
    if isinstance(column, Text):
        texts, code = distinct_texts(column)
        return pa.DictionaryArray.from_arrays(code, pa.array(texts, pa.string()))
    if isinstance(column, Numbers):
        return pa.array(column.values, mask=~column.known)
    return pa.array(column)
