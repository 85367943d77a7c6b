"""Figures of recordings over time."""

from typing import Any

import numpy as np

from tb_memplugin.analysis.fragmentation import fragmentation
from tb_memplugin.analysis.usage.figure_definitions import ALLOCATOR, Figure, define
from tb_memplugin.analysis.usage.live_bytes import peak, traffic
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.questions.kinds import torch_profile, watched

HEAP_PEAK = "Lifetime peak of the heap"  # where the allocator has a stack, which the figure excludes
LOWER_BOUND = "The largest hole between live blocks at the peak; a larger request may have succeeded beyond them."


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in display order."""
    if recording.kind.is_sampled:
        return watched.figures(recording)
    if recording.kind.is_torch:
        return torch_profile.figures(recording)
    top = peak(recording)
    at_peak = _at(recording.reported, top.position)
    moved = traffic(recording)
    return [
        define(ALLOCATOR, "live_peak", top.bytes),
        define(ALLOCATOR, "capacity", recording.capacity),
        define(ALLOCATOR, "reported_peak", recording.reported_peak, HEAP_PEAK if at_peak.get("reserved") else ""),
        define(ALLOCATOR, "heap", at_peak.get("in_use")),
        define(ALLOCATOR, "stack", at_peak.get("reserved")),
        define(ALLOCATOR, "free", at_peak.get("free") if recording.capacity else None),
        define(ALLOCATOR, "fragmented", at_peak.get("fragmented") if recording.capacity else None),
        _largest_free(recording, top.position),
        define(ALLOCATOR, "allocated", moved.allocated_bytes, f"Allocated in {moved.allocations:,}"),
        define(ALLOCATOR, "freed", moved.freed_bytes, f"Freed in {moved.frees:,}"),
        define(ALLOCATOR, "freed_before", moved.freed_before_bytes, f"Freed from before: {moved.freed_before:,}"),
        define(ALLOCATOR, "live_before", moved.live_before_bytes),
        define(ALLOCATOR, "never_freed", moved.never_freed_bytes, f"Not freed: {moved.never_freed:,}"),
    ]  # fmt: skip


def _largest_free(recording: Recording, position: int) -> Figure:
    pieces = fragmentation(recording)
    known = position < recording.length and not np.isnan(pieces.largest_free[position])
    figure = define(ALLOCATOR, "largest_free", int(pieces.largest_free[position]) if known else None)
    # Addresses show the holes between blocks, but not the free memory beyond the last block.
    return figure if pieces.reported else figure._replace(text=LOWER_BOUND)


def _at(reported: ReportedMemory | None, position: int) -> dict[str, Any]:
    if reported is None or not len(reported.in_use):
        return {}
    free, fraction = int(reported.free[position]), float(reported.fragmentation[position])
    return {
        "in_use": int(reported.in_use[position]),
        "reserved": int(reported.reserved[position]),
        "free": free,
        "fragmented": round(free * fraction) if 0 <= fraction <= 1 else None,
    }
