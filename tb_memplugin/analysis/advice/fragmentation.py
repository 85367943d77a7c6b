"""Memory that is held and that nobody can use: holes between buffers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.piece import Advice, Kind, by_size, worth
from tb_memplugin.analysis.liveset import live_rows
from tb_memplugin.analysis.usage import peak
from tb_memplugin.recording import I64, Recording, RegionKind
from tb_memplugin.sizes import bytes_text

LEAST_PART = 0.05  # of what is held; best-fit heaps always leave some
MIXED = "Buffers that live long and short ones take turns in the same memory, and leave holes that fit neither."


def advise(recording: Recording) -> Iterator[Advice]:
    top = peak(recording)
    if recording.program is not None:
        temporary = recording.regions.kind == RegionKind.TEMPORARY
        held = int(recording.regions.size[temporary].sum())
        live = live_rows(recording, top.position)
        live = live[temporary[recording.allocations.region[live]]]
        yield from _holes(
            recording, live, held, held - int(recording.allocations.charge[live].sum()), "temporary memory",
            f"{MIXED} Fewer sizes help (the same shape in each layer, a batch that divides evenly), and so does "
            "jax.checkpoint: what is recomputed does not live long.",
        )  # fmt: skip
    elif recording.kind.startswith("torch") and len(recording.regions):
        live = live_rows(recording, top.position)
        held = int(recording.regions.size.sum())
        yield from _holes(
            recording, live, held, held - int(recording.allocations.charge[live].sum()), "the allocator's segments",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        )  # fmt: skip
    elif recording.reported is not None and len(recording.reported.free):
        free = int(recording.reported.free[top.position])
        part = float(np.nan_to_num(recording.reported.fragmentation[top.position]))
        yield from _holes(
            recording, live_rows(recording, top.position), top.bytes + free, int(free * part), "the allocator's memory",
            "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, or XLA_PYTHON_CLIENT_PREALLOCATE=true, with which the allocator "
            "begins with one piece",
        )  # fmt: skip


def _holes(recording: Recording, live: I64, held: int, lost: int, what: str, change: str) -> Iterator[Advice]:
    if lost < LEAST_PART * held or not worth(recording, lost):
        return
    yield Advice(
        kind=Kind.FRAGMENTATION,
        title=f"Fragmentation: {lost / held:.0%} of {what}",
        sentence=f"At the peak {bytes_text(lost)} of the {bytes_text(held)} of {what} lie in holes between buffers: "
        "held, but no use to anything larger than a hole. They are not in the peak, but they must fit.",
        change=change,
        rows=by_size(recording, live),
        bytes=lost,
        saving_bytes=lost,
        new_peak_bytes=peak(recording).bytes,
    )
