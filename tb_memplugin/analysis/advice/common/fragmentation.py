"""Advice on fragmentation of an allocator: memory in gaps between allocations.

Compiled programs have gaps as well, but no change of the code was found that makes them smaller for sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.address.fragmentation import fragmentation
from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, is_worthwhile, sort_by_size
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, percent_text

MIN_SHARE = 0.05  # of the allocator's memory
TORCH = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
EXPANDABLE = (
    "Segments are expandable already. Use fewer distinct tensor sizes: pad batches and sequences to the same lengths, "
    "and allocate caches once, before short-lived tensors."
)
# XLA's allocator on NVIDIA GPUs; only there can another one replace it.
GPU_ALLOCATOR = re.compile(r"GPU_\d+_\w+")
ASYNC = "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"
FEWER_SIZES = "Use fewer distinct array sizes: pad batches and sequences to the same lengths, and allocate caches once."
LIVE_ARRAYS = "live arrays"  # a recording of capture.track(): arrays, not an allocator's memory


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece if gaps take a large share of an allocator's memory."""
    top = peak(recording)
    if recording.program is not None or recording.memory.endswith(LIVE_ARRAYS):
        return
    if not 0 <= top.position < len(fragmentation(recording).fragmented):
        return
    free = fragmentation(recording)
    lost, largest = free.fragmented[top.position], free.largest_free[top.position]
    # If more memory is free than used, the next request will fit.
    if np.isfinite(lost) and lost + largest <= top.bytes:
        change = _torch_change(recording) if recording.kind.is_torch else _jax_change(recording)
        held = top.bytes + int(lost + largest)
        yield from _advise_holes(recording, live_rows(recording, top.position), held, int(lost), change)


def _jax_change(recording: Recording) -> str:
    return ASYNC if GPU_ALLOCATOR.fullmatch(recording.memory) else FEWER_SIZES


def _torch_change(recording: Recording) -> str:
    """Return the change for PyTorch. Only expandable segments have `segment_map` events."""
    state = recording.caching_allocator
    strings = state.events.strings if state is not None and state.events is not None else ()
    return EXPANDABLE if "segment_map" in (strings[i] for i in range(len(strings))) else TORCH


def _advise_holes(recording: Recording, live: I64, held: int, lost: int, change: str) -> Iterator[Advice]:
    if lost < MIN_SHARE * held or not is_worthwhile(recording, lost):
        return
    yield Advice(
        kind=AdviceKind.FRAGMENTATION,
        title=f"Fragmentation: {percent_text(lost, held)} of the allocator's memory",
        sentence=f"At the peak, {bytes_text(lost)} of the {bytes_text(held)} of the allocator's memory are gaps "
        "between buffers: reserved, but only usable for buffers smaller than a gap. They are not part of the peak, "
        "but must fit in the device.",
        change=change,
        rows=sort_by_size(recording, live),
        bytes=int(recording.allocations.charge[live].sum()),
        saving=Saving(lost, peak(recording).bytes, lost, lost, reserved=held),
    )
