"""Advice on a single tensor that takes more than half of the memory: compute it in parts.

Arguments and results are not in question: their caller decides their size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, row_name, saving, sort_by_size
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.dataflow import Derivation
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# In a program of two or three tensors, one of them is naturally half of the memory.
MIN_ROWS = 8
# The memory of the largest accelerator: a larger tensor fits no device.
LARGEST_DEVICE = 288 * 2**30
PARTS = 16
MAX_STEPS = 16  # of a chain of values that are computed element by element from each other


def advise(recording: Recording) -> Iterator[Advice]:
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
    if _is_argument(recording, largest) and 2 * size <= max(recording.capacity or 0, LARGEST_DEVICE):
        return
    rows = _computed_together(recording, largest)
    saved = saving(recording, resize_rows(recording, rows, table.size[rows] // PARTS))
    if saved is None:
        return
    yield Advice(
        kind=AdviceKind.OVERSIZED,
        title=f"One tensor is {size / whole:.0%} of {of}",
        sentence=f"{row_name(recording, largest)}, {table.shape[largest]}, takes {bytes_text(size)}"
        f"{f'; {of} is' if size > whole else ' of'} {bytes_text(whole)}. Computing it in {PARTS} parts "
        f"{saved.effect}.",
        change=code(recording),
        rows=(ordered := sort_by_size(recording, rows)),
        bytes=int(table.size[ordered].sum()),
        saving=saved,
    )


def code(recording: Recording) -> str:
    """Return code that computes a tensor in parts; for a gradient, each part is computed again."""
    part, what = ("jax.checkpoint(f)", "loss") if training_step(recording) is not None else ("f", "largest entries")
    return (
        f"y = jax.lax.map({part}, x, batch_size=max(1, len(x) // {PARTS}))  # f: from one element of x to what is "
        f"left of the tensor, such as its {what}. Before that, look for a leftover jax.debug.print, for an array that "
        "is not sharded and should be, and for a broadcast before a reduction"
    )


def _is_argument(recording: Recording, row: int) -> bool:
    graph, program = dataflow_graph(recording), recording.program
    if graph is None or program is None or program.value is None:
        return False
    value = int(program.value[row])
    return value >= 0 and bool(graph.values.argument[value] >= 0)


def _computed_together(recording: Recording, row: int) -> I64:
    """Return the row, and the rows of values that are computed from it element by element, or it from them."""
    graph, program = dataflow_graph(recording), recording.program
    if graph is None or program is None or program.value is None or program.value[row] < 0:
        return np.array([row])
    values, derived = graph.values, graph.values.derivations
    same = (derived.kind != Derivation.PART) & (values.elements[derived.source] == values.elements[derived.target])
    source, target = derived.source[same], derived.target[same]
    found = np.zeros(len(values), dtype=bool)
    found[program.value[row]] = True
    for _ in range(MAX_STEPS):
        before = int(found.sum())
        found[target[found[source]]] = True
        found[source[found[target]]] = True
        if int(found.sum()) == before:
            break
    rows = row_of_value(recording)[np.flatnonzero(found & (values.argument < 0))]
    together: I64 = np.union1d(rows[rows >= 0], [row]).astype(np.int64)
    return together
