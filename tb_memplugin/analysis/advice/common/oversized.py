"""Advice on a single tensor that takes more than half of the memory, often a mistake in how work is split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, row_name, saving
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# In a program of two or three tensors, one of them is naturally half of the memory.
MIN_ROWS = 8
# The memory of the largest accelerator: a larger tensor fits no device.
LARGEST_DEVICE = 288 * 2**30


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
    saved = saving(recording, resize_rows(recording, live[:1], np.zeros(1, dtype=np.int64)))
    if saved is None:
        return
    yield Advice(
        kind=AdviceKind.OVERSIZED,
        title=f"One tensor is {size / whole:.0%} of {of}",
        sentence=f"{row_name(recording, largest)}, {table.shape[largest]}, takes {bytes_text(size)}"
        f"{f'; {of} is' if size > whole else ' of'} {bytes_text(whole)}. Removing it {saved.effect}.",
        change="Look for a leftover jax.debug.print or check, for an array that should be sharded but is not (a mesh "
        "axis missing in its PartitionSpec), and for a broadcast before a reduction. Otherwise compute it in parts, "
        "with jax.lax.map(..., batch_size=...) or smaller batches.",
        rows=live[:1],
        bytes=size,
        saving=saved,
    )
