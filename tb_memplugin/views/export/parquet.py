"""Recordings as Parquet, by pyarrow, which is asked for when it is needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.views.export.export_table import Column, Numbers, Table, distinct
from tb_memplugin.views.export.rows import pieces
from tb_memplugin.views.shared.summary import summary

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARIES = "tb_memplugin"  # the key of what `summary --json` says of the recordings, in the file's metadata


def can_write_parquet() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(recordings: Sequence[Recording], stream: BinaryIO) -> None:
    """What is unknown is null. Of at least one recording; a row group for each piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = json.dumps({"recordings": [summary(recording) for recording in recordings]}, allow_nan=False)
    batches = (_batch(pa, piece) for recording in recordings for piece in pieces(recording))
    first = next(batches)
    # Arrow's schema would have texts read as dictionaries, another in each row group, which Arrow cannot group by.
    with pq.ParquetWriter(stream, first.schema, store_schema=False) as writer:
        writer.add_key_value_metadata({SUMMARIES: told})
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _batch(pa: Any, piece: Table) -> pa.RecordBatch:
    return pa.record_batch({name: _array(pa, column) for name, column in piece.items()})


def _array(pa: Any, column: Column) -> pa.Array:
    if isinstance(column, Text):
        texts, code = distinct(column)
        return pa.DictionaryArray.from_arrays(code, pa.array(texts, pa.string()))
    if isinstance(column, Numbers):
        return pa.array(column.values, mask=~column.known)
    return pa.array(column)
