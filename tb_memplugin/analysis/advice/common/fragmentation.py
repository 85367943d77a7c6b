"""Memory that is held and that nobody can use: holes between buffers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.address.fragmentation import fragmentation
from tb_memplugin.analysis.advice.model import Advice, AdviceKind, is_worthwhile, sort_by_size
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

MIN_SHARE = 0.05  # of what is held; best-fit heaps always leave some
PROGRAM = (
    "Buffers that live long and short ones take turns in the same memory, and leave holes that fit neither. Fewer "
    "sizes help (the same shape in each layer, a batch that divides evenly), and so does jax.checkpoint: what is "
    "recomputed does not live long."
)
TORCH = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
EXPANDABLE = (
    "Segments are expandable already. Tensors of fewer sizes leave fewer holes: batches and sequences padded to the "
    "same lengths, and caches made once, before what comes and goes."
)
BFC = "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"


def advise(recording: Recording) -> Iterator[Advice]:
    top = peak(recording)
    live = live_rows(recording, top.position)
    if recording.program is not None:
        temporary = recording.regions.kind == RegionKind.TEMPORARY
        held = int(recording.regions.size[temporary].sum())
        live = live[temporary[recording.allocations.region[live]]]
        lost = held - int(recording.allocations.charge[live].sum())
        yield from _advise_holes(recording, live, held, lost, "temporary memory", PROGRAM)
    elif 0 <= top.position < len(fragmentation(recording).fragmented):
        free = fragmentation(recording)
        lost, largest = free.fragmented[top.position], free.largest_free[top.position]
        # Where more is free than is used, what is asked for next finds a place.
        if np.isfinite(lost) and lost + largest <= top.bytes:
            change = _torch_change(recording) if recording.kind.is_torch else BFC
            held = top.bytes + int(lost + largest)
            yield from _advise_holes(recording, live, held, int(lost), "the allocator's memory", change)


def _torch_change(recording: Recording) -> str:
    """Only expandable segments are mapped, piece by piece."""
    strings = recording.events.strings if recording.events is not None else ()
    return EXPANDABLE if "segment_map" in (strings[i] for i in range(len(strings))) else TORCH


def _advise_holes(recording: Recording, live: I64, held: int, lost: int, what: str, change: str) -> Iterator[Advice]:
    if lost < MIN_SHARE * held or not is_worthwhile(recording, lost):
        return
    yield Advice(
        kind=AdviceKind.FRAGMENTATION,
        title=f"Fragmentation: {lost / held:.0%} of {what}",
        sentence=f"At the peak {bytes_text(lost)} of the {bytes_text(held)} of {what} lie in holes between buffers: "
        "held, but no use to anything larger than a hole. They are not in the peak, but they must fit.",
        change=change,
        rows=sort_by_size(recording, live),
        bytes=lost,
        saving_bytes=lost,
        new_peak_bytes=peak(recording).bytes,
    )
