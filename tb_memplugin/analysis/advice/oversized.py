"""One tensor that is more than half of everything: seldom meant, often a mistake in how work is split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.piece import Advice, Kind, name_of, saving
from tb_memplugin.analysis.liveset import live_rows
from tb_memplugin.analysis.replay import resized
from tb_memplugin.analysis.usage import peak
from tb_memplugin.recording import Recording
from tb_memplugin.sizes import bytes_text

# In a program of two or three tensors one of them is half of it, and that is no mistake.
LEAST_ROWS = 8


def advise(recording: Recording) -> Iterator[Advice]:
    table, top = recording.allocations, peak(recording)
    live = live_rows(recording, top.position)
    if not len(live) or recording.program is None or (len(live) < LEAST_ROWS and not recording.capacity):
        return
    largest = int(live[0])
    size = int(table.charge[largest])
    whole = recording.capacity or top.bytes
    if 2 * size <= whole:
        return
    saved = saving(recording, resized(recording, live[:1], np.zeros(1, dtype=np.int64)))
    if saved is None:
        return
    of = "the capacity" if recording.capacity else "the peak"
    yield Advice(
        kind=Kind.OVERSIZED,
        title=f"One tensor is {size / whole:.0%} of {of}",
        sentence=f"{name_of(recording, largest)}, {table.shape[largest]}, takes {bytes_text(size)} of "
        f"{bytes_text(whole)}. Without it the peak would be {bytes_text(saved.bytes)} lower.",
        change="Look for a jax.debug.print or a check left over, for an array that should be sharded and is not "
        "(a mesh axis left out of its PartitionSpec), and for a broadcast before a reduction; else work on it in "
        "pieces, with jax.lax.map(..., batch_size=...) or smaller batches.",
        rows=live[:1],
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
