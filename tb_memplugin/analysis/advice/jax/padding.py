"""Advice on arguments with a dimension a little larger than the tiles of their layout: 9 columns take the space of 16.

Compilers choose layouts with little padding. Stored in another shape, such an argument is copied into that layout
where it is used, and compiled programs then need more memory than before; only a smaller dimension saves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text

# `f32[4096,129]{1,0:T(8,128)}`: dimensions, their order from the innermost, and the tile of the innermost ones.
TILED = re.compile(r"(\w+)\[([\d,]{1,200})\]\{([\d,]{1,100}):T\(([\d,]{1,100})\)")
MAX_SHAPES = 5  # shapes
MAX_LOST = 8  # an eighth of a dimension; a larger change is another model


class RaggedDimension(NamedTuple):
    """A dimension that does not fill its tiles."""

    number: int
    extent: int
    tile: int

    @property
    def below(self) -> int:
        return self.extent // self.tile * self.tile

    @property
    def above(self) -> int:
        return -(-self.extent // self.tile) * self.tile


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for each shape that is padded at the peak."""
    table = recording.allocations
    live = live_rows(recording, peak(recording).position)
    padding = np.where(table.size > table.requested, table.size - table.requested, 0)
    codes = table.shape.codes[live]
    wasted = np.bincount(codes[codes >= 0], padding[live][codes >= 0])
    for code in np.argsort(-wasted, kind="stable")[:MAX_SHAPES].tolist():
        if wasted[code] > 0 and (piece := _advise_shape(recording, code, live[codes == code], padding)):
            yield piece


def _advise_shape(recording: Recording, code: int, live: I64, padding: I64) -> Advice | None:
    """Simulate all rows of the shape with smaller dimensions, not only those at the peak: others may be the next."""
    table = recording.allocations
    rows = np.flatnonzero((table.shape.codes == code) & (padding > 0))
    if not _is_stored(recording, rows):  # the shapes of computed values follow from the model and from the compiler
        return None
    shape = table.shape.strings[code]
    smaller = [one for one in ragged_dimensions(shape) if MAX_LOST * (one.extent - one.below) <= one.extent]
    kept = table.size[rows]
    for one in smaller:
        kept = kept // one.above * one.below
    saved = saving(recording, resize_rows(recording, rows, kept)) if smaller else None
    if saved is None:
        return None
    size, wasted = int(table.size[live].sum()), int(padding[live].sum())
    count = f"{len(live):,} tensors" if len(live) > 1 else "One tensor"
    return Advice(
        kind=AdviceKind.PADDING,
        title=f"Padding of {shape.partition('{')[0]}",
        sentence=f"{count} of shape {shape} {agree(len(live), 'takes', 'take')} {bytes_text(size)} at the peak; "
        f"{bytes_text(wasted)} of it ({wasted / max(size, 1):.0%}) is padding. A shape that fills its tiles "
        f"{saved.effect}.",
        change="; ".join(
            f"dimension {one.number} is {one.extent}, and the tiles have {one.tile}: make it {one.below}"
            for one in smaller
        ),
        rows=sort_by_size(recording, live),
        bytes=wasted,
        saving=saved,
    )


def _is_stored(recording: Recording, rows: I64) -> bool:
    """Return whether a row is an argument, whose shape can be changed where it is stored."""
    graph, row = dataflow_graph(recording), row_of_value(recording)
    return graph is None or bool(np.isin(row[graph.values.argument >= 0], rows).any())


def ragged_dimensions(shape: str) -> list[RaggedDimension]:
    """Return the dimensions that do not fill their tiles, innermost first; none if the shape has no tiles."""
    found = TILED.match(shape)
    if not found:
        return []
    dimensions, order, tile = ([int(n) for n in found[i].split(",") if n] for i in (2, 3, 4))
    pairs = zip(order, reversed(tile), strict=False)
    laid = [RaggedDimension(at, dimensions[at], width) for at, width in pairs if at < len(dimensions) and width > 0]
    return [one for one in laid if one.extent % one.tile]
