"""Advice on the shapes of tensors: dimensions that leave tiles half empty, and one tensor as large as the program.

A dimension of 9 columns may take the space of 16. Compilers choose layouts with little padding. If a padded argument
is stored in another shape, it is copied into its layout where it is used, and compiled programs need more memory than
before; only a smaller dimension saves. A tensor of more than half of the memory can be computed in parts, unless it is
an argument or a result, whose size the caller decides.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, row_name, saving, sort_by_size
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, dataflow_graph, row_of_value
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64, marked
from tb_memplugin.model.dataflow import Derivation
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, percent_text

# `f32[4096,129]{1,0:T(8,128)}`: dimensions, their order from the innermost, and the tile of the innermost ones.
TILED = re.compile(r"(\w+)\[([\d,]{1,200})\]\{([\d,]{1,100}):T\(([\d,]{1,100})\)")
MAX_SHAPES = 5  # shapes
# At most an eighth of a dimension is cut, because a larger change is another model. With a half, three of the stored
# programs would get advice to shrink images from 224 pixels to 128; with a fourth or a sixteenth, no answer changes.
MAX_LOST = 8


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


def advise_padding(recording: Recording) -> Iterator[Advice]:
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
    """Simulate smaller dimensions of all rows of the shape: rows that are not at the peak may be at the next one."""
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
        f"{bytes_text(wasted)} of it ({percent_text(wasted, max(size, 1))}) is padding. A shape that fills its tiles "
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


GATHER, SCATTER = re.compile(r"(^|/)(gather|take)\b"), re.compile(r"(^|/)scatter\b")  # in an op_name
BACKWARD = "transpose("
MAX_COLUMNS = 16  # more make code that nobody writes
MIN_PADDED = 0.75  # of the bytes of gathered rows; a choice, as half of them may be layout that another one keeps


def advise_gathered(recording: Recording) -> Iterator[Advice]:
    """Yield a piece if rows of few columns are gathered or scattered, so that each of them fills a row of a tile.

    A TPU gathers and scatters whole rows. Where each column is on its own, its values lie side by side.
    """
    table, graph = recording.allocations, dataflow_graph(recording)
    if graph is None:
        return
    padding = table.size - table.requested
    columns = np.array([_columns(shape) for shape in table.shape.strings], np.int64)[table.shape.codes]
    padded = (columns > 0) & (table.shape.codes >= 0) & (padding >= MIN_PADDED * table.size)
    padded &= (graph.value >= 0) & ~graph.is_argument
    live = sort_by_size(
        recording, np.flatnonzero(padded & marked(len(table), live_rows(recording, peak(recording).position)))
    )
    names = [name for row in live.tolist() for name in _operations(recording, graph, row)]
    rows = np.flatnonzero(padded)
    saved = saving(recording, resize_rows(recording, rows, table.requested[rows]))
    if saved is not None and any(GATHER.search(name) or SCATTER.search(name) for name in names):
        scattered = any(SCATTER.search(name) and BACKWARD not in name for name in names)
        yield _gathered_piece(recording, live, int(columns[live[0]]), "scatter" if scattered else "gather", saved)


def _columns(shape: str) -> int:
    """Return the extent of a shape's innermost dimension if it is small and does not fill its tiles, else 0."""
    extent = next((one.extent for one in ragged_dimensions(shape)), 0)
    return extent if 1 < extent <= MAX_COLUMNS else 0


def _operations(recording: Recording, graph: DataflowGraph, row: int) -> Iterator[str]:
    """Yield the op_names of the instructions that make a row's value and that read it."""
    yield recording.allocations.op_name[row]
    value, values = int(graph.value[row]), graph.values
    for position in values.use[values.use_begin[value] : values.use_begin[value + 1]].tolist():
        yield graph.program.op_name[position]


def _gathered_piece(recording: Recording, live: I64, columns: int, verb: str, saved: Saving) -> Advice:
    table = recording.allocations
    size, wasted = int(table.size[live].sum()), int((table.size - table.requested)[live].sum())
    shape = table.shape[int(live[0])]
    each = f"for i in range({columns})], -1)  # in place of"
    code = f"jnp.stack([x[:, i][indices] {each} x[indices]"
    if verb == "scatter":
        code = f"jnp.stack([jax.ops.segment_sum(x[:, i], indices, n) {each} jax.ops.segment_sum(x, indices, n)"
    return Advice(
        kind=AdviceKind.GATHER,
        title=f"{verb.capitalize()} {shape.partition('{')[0]} by columns",
        sentence=f"Rows of {columns} columns are {verb}ed, {shape}: each fills a row of a tile, so that "
        f"{bytes_text(wasted)} of {bytes_text(size)} at the peak are padding. To {verb} each column on its own "
        f"{saved.effect}.",
        change=code,
        rows=live,
        bytes=wasted,
        saving=saved,
    )


def ragged_dimensions(shape: str) -> list[RaggedDimension]:
    """Return the dimensions that do not fill their tiles, innermost first; none if the shape has no tiles."""
    return [one for one in laid_dimensions(shape) if one.extent % one.tile]


def laid_dimensions(shape: str) -> list[RaggedDimension]:
    """Return the dimensions of a shape's tiles, innermost first; none if the shape has no tiles."""
    found = TILED.match(shape)
    if found is None:
        return []
    dimensions, order, tile = ([int(n) for n in found[i].split(",") if n] for i in (2, 3, 4))
    pairs = zip(order, reversed(tile), strict=False)
    return [RaggedDimension(at, dimensions[at], width) for at, width in pairs if at < len(dimensions) and width > 0]


def share_of_batch(shape: str, batch: int, parts: int) -> float:
    """Return the share of a shape's bytes that it takes with a part of the batch.

    A TPU's tile has 128 columns. If the batch fills them and a part of it does not, another dimension becomes the
    innermost one and may need padding instead: `f32[128,32,32,160]{0,3,2,1}` is 80 MiB, half of it in `{3,0,2,1}` 64.
    """
    laid, part = laid_dimensions(shape), batch // parts
    if len(laid) < 2 or laid[0].extent != batch or batch % laid[0].tile or part % laid[0].tile == 0:
        return 1 / parts
    columns, rows = laid[:2]
    kept = columns._replace(extent=part).above * rows.above
    swapped = columns._replace(extent=rows.extent).above * rows._replace(extent=part).above
    return min(kept, swapped) / (columns.above * rows.above)


# In a program of two or three tensors, one of them is naturally half of the memory.
MIN_ROWS = 8
# The memory of the largest accelerator: a larger tensor fits no device.
LARGEST_DEVICE = 288 * 2**30
PARTS = 16
MAX_STEPS = 16  # steps of a chain of values that are computed element by element from each other


def advise_oversized(recording: Recording) -> Iterator[Advice]:
    """Yield a piece if one tensor takes more than half of the capacity, or of the peak if the capacity is unknown."""
    table, top = recording.allocations, peak(recording)
    live = live_rows(recording, top.position)
    if not len(live) or recording.program is None:
        return
    # The compiler chooses what it places in on-chip memory.
    if recording.program.memory_space > 0 or recording.regions.kind[table.region[live[0]]] & RegionKind.OUTPUT:
        return
    largest = int(live[0])
    size = int(table.charge[largest])
    if recording.capacity:
        whole, of = recording.capacity, "the capacity"
    elif size > LARGEST_DEVICE:
        whole, of = LARGEST_DEVICE, "the largest accelerator's memory"
    elif len(live) >= MIN_ROWS:
        whole, of = top.bytes, "the peak"
    else:
        return
    if 2 * size <= whole:
        return
    graph = dataflow_graph(recording)
    if graph is not None and graph.is_argument[largest] and 2 * size <= max(recording.capacity or 0, LARGEST_DEVICE):
        return
    rows = _computed_together(recording, largest)
    saved = saving(recording, resize_rows(recording, rows, table.size[rows] // PARTS))
    if saved is None:
        return
    yield Advice(
        kind=AdviceKind.OVERSIZED,
        title=f"One tensor is {percent_text(size, whole)} of {of}",
        sentence=f"{row_name(recording, largest)}, {table.shape[largest]}, takes {bytes_text(size)}"
        f"{f'; {of} is' if size > whole else ' of'} {bytes_text(whole)}. Computing it in {PARTS} parts "
        f"{saved.effect}.",
        change=code_in_parts(recording),
        rows=(ordered := sort_by_size(recording, rows)),
        bytes=int(table.size[ordered].sum()),
        saving=saved,
    )


def code_in_parts(recording: Recording) -> str:
    """Return code that computes a tensor in parts; each part is computed again for a gradient."""
    part, what = ("jax.checkpoint(f)", "loss") if training_step(recording) is not None else ("f", "largest entries")
    return (
        f"y = jax.lax.map({part}, x, batch_size=max(1, len(x) // {PARTS}))  # f: from one element of x to what is "
        f"left of the tensor, such as its {what}. Before that, look for a leftover jax.debug.print, for an array that "
        "is not sharded and should be, and for a broadcast before a reduction"
    )


def _computed_together(recording: Recording, row: int) -> I64:
    """Return the row, and the rows of values that are computed from it, or that it is computed from, by element."""
    graph = dataflow_graph(recording)
    if graph is None or graph.value[row] < 0:
        return np.array([row])
    values, derived = graph.values, graph.values.derivations
    same = (derived.kind != Derivation.PART) & (values.elements[derived.source] == values.elements[derived.target])
    source, target = derived.source[same], derived.target[same]
    found = marked(len(values), graph.value[row])
    for _ in range(MAX_STEPS):
        before = int(found.sum())
        found[target[found[source]]] = True
        found[source[found[target]]] = True
        if int(found.sum()) == before:
            break
    rows = row_of_value(recording)[np.flatnonzero(found & (values.argument < 0))]
    return np.union1d(rows[rows >= 0], [row]).astype(np.int64)
