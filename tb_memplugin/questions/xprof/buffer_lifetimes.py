"""The parts of XProf's Memory Viewer answer about lifetimes: spans, blocks, and memory of the whole program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.questions.xprof.json_fields import (
    MIB,
    Json,
    ProgramTables,
    column_texts,
    id_text,
    nonempty_fields,
    source_info,
    split_name,
)

ATTRIBUTES = (
    (RegionKind.PARAMETER, "entry computation parameter"),
    (RegionKind.OUTPUT, "may-be live out"),
)


def buffer_spans(tables: ProgramTables) -> dict[str, Json]:
    """Return per temporary buffer the point before which it is allocated, and the last point at which it is live."""
    which = tables.temporary_blocks()
    start, limit = np.maximum(tables.rows.start[which], 0).tolist(), tables.rows.end[which].tolist()
    ids = tables.rows.id[which].tolist()
    return {str(b): nonempty_fields({"start": s, "limit": e}) for b, s, e in zip(ids, start, limit, strict=True)}


def indefinite_lifetimes(tables: ProgramTables) -> Iterator[Json]:
    """Yield the allocations that last for the whole program, each with all its logical buffers."""
    rows = tables.rows
    which = np.flatnonzero(~tables.temporary & ((tables.kind & RegionKind.THREAD_LOCAL) == 0))
    which = which[np.argsort(rows.region[which], kind="stable")]
    reusable = ~tables.not_reusable()
    columns = (rows.region[which].tolist(), rows.id[which].tolist(), rows.size[which].tolist())
    members = zip(*columns, column_texts(rows.name, which), column_texts(rows.shape, which), strict=True)
    for region, group in groupby(members, key=itemgetter(0)):
        buffers = [_logical_buffer(*member[1:]) for member in group]
        attributes = [text for flag, text in ATTRIBUTES if int(tables.regions.kind[region]) & flag]
        shapes = {buffer.get("shape", "") for buffer in buffers}
        yield nonempty_fields(
            {
                "id": id_text(int(tables.regions.index[region])),
                "sizeMib": int(tables.regions.size[region]) / MIB,
                "attributes": [*attributes, "reusable"] if reusable[region] else attributes,
                "logicalBuffers": buffers,
                "commonShape": shapes.pop() if len(shapes) == 1 else "",
            }
        )


def buffer_blocks(tables: ProgramTables) -> Iterator[Json]:
    """Yield the temporary allocations, stacked by address, each followed by its buffers. Sizes are bytes."""
    which = tables.temporary_blocks()
    regions = tables.regions
    containers = np.flatnonzero(regions.kind == RegionKind.TEMPORARY)
    bounds = np.searchsorted(tables.rows.region[which], np.append(containers, len(regions))).tolist()
    base = 0
    for number, container in enumerate(containers.tolist()):
        size = int(regions.size[container])
        yield nonempty_fields(
            {
                "logicalBufferId": -1,
                "name": "Temporary",
                "offset": base,
                "size": size,
                "endStep": tables.recording.length,
                "category": "Temporary",
                "color": "#ffffff",
            }
        )
        yield from _blocks_in(tables, which[bounds[number] : bounds[number + 1]], base)
        base += size


def _blocks_in(tables: ProgramTables, which: I64, base: int) -> Iterator[Json]:
    rows = tables.rows
    sources = {leaf: source_info(tables.recording, leaf) for leaf in np.unique(rows.stack[which]).tolist()}
    columns: dict[str, Iterable[Any]] = {
        "logicalBufferId": rows.id[which].tolist(),
        "name": column_texts(rows.name, which),
        "offset": (rows.offset[which] + base).tolist(),
        "size": rows.size[which].tolist(),
        "startStep": np.maximum(rows.start[which], 0).tolist(),
        "endStep": rows.end[which].tolist(),
        "tfOpName": column_texts(rows.op_name, which),
        "category": ["Temporary"] * len(which),
        "sourceInfo": map(sources.__getitem__, rows.stack[which].tolist()),
        "shapeString": column_texts(rows.shape, which),
        "unpaddedSize": rows.requested[which].tolist(),
        # Hues near the golden angle from each other, so that neighbors differ.
        "color": [f"hsl({number * 137 % 360},60%,55%)" for number in range(len(which))],
    }
    for values in zip(*columns.values(), strict=True):
        yield {name: value for name, value in zip(columns, values, strict=True) if value}


def _logical_buffer(buffer: int, size: int, name: str, shape: str) -> Json:
    instruction, index = split_name(name)
    fields = {"id": id_text(buffer), "shape": shape, "sizeMib": size / MIB, "hloName": instruction}
    return nonempty_fields({**fields, "shapeIndex": index})
