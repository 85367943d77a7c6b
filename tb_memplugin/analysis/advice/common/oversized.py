"""One tensor that is more than half of everything: seldom meant, often a mistake in how work is split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, row_name, saving
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# In a program of two or three tensors one of them is half of it, and that is no mistake.
MIN_ROWS = 8
# Of the accelerators there are: a tensor larger than that is for no device, known or not.
LARGEST_DEVICE = 288 * 2**30


def advise(recording: Recording) -> Iterator[Advice]:
    table, top = recording.allocations, peak(recording)
    live = live_rows(recording, top.position)
    if not len(live) or recording.program is None:
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
        f"{f'; {of} is' if size > whole else ' of'} {bytes_text(whole)}. Without it the peak would be "
        f"{bytes_text(saved.bytes)} lower.",
        change="Look for a jax.debug.print or a check left over, for an array that should be sharded and is not "
        "(a mesh axis left out of its PartitionSpec), and for a broadcast before a reduction; else work on it in "
        "pieces, with jax.lax.map(..., batch_size=...) or smaller batches.",
        rows=live[:1],
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
