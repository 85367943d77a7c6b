"""Figures of recordings over time, and sentences about the gradients that a PyTorch training loop retains."""

from typing import Any

import numpy as np

from tb_memplugin.analysis.fragmentation import fragmentation
from tb_memplugin.analysis.leaks.over_steps import possible_state_bytes, retained_gradients
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.figure_definitions import ALLOCATOR, TORCH, Figure, define
from tb_memplugin.analysis.usage.live_bytes import peak, traffic
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.questions.kinds import watched
from tb_memplugin.sizes import agree, bytes_text, counted

HEAP_PEAK = "Lifetime peak of the heap"  # where the allocator has a stack, which the figure excludes
LOWER_BOUND = "The largest hole between live blocks at the peak; a larger request may have succeeded beyond them."


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in display order."""
    if recording.kind.is_sampled:
        return watched.figures(recording)
    if recording.kind.is_torch:
        return torch_figures(recording)
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


def torch_figures(recording: Recording) -> list[Figure]:
    """Return the figures in reading order."""
    top, rows = peak(recording), recording.allocations
    reserved, pieces, moved = recording.reserved, fragmentation(recording), traffic(recording)
    live = rows.live_at(top.position)
    waiting = live & (rows.last_used <= top.position) & (rows.start < rows.last_used)
    rounding = int((rows.charge - rows.requested)[live].sum())
    at = int(reserved[top.position]) if reserved is not None and len(reserved) else None
    largest = pieces.largest_free[top.position] if len(pieces.largest_free) else np.nan
    return [
        define(TORCH, "live_peak", top.bytes),
        define(TORCH, "reserved", int(reserved.max(initial=0)) if reserved is not None else None),
        define(TORCH, "cached", at - top.bytes if at is not None else None),
        define(TORCH, "largest_free", None if np.isnan(largest) else int(largest)),
        define(TORCH, "rounding", rounding),
        define(TORCH, "pending", int(rows.charge[waiting].sum())),
        define(TORCH, "allocated", moved.allocated_bytes, f"Allocated in {moved.allocations:,}"),
        define(TORCH, "freed", moved.freed_bytes, f"Freed in {moved.frees:,}"),
        *within_reach(recording),
        define(TORCH, "live_before", moved.live_before_bytes),
        define(TORCH, "possible_state", possible_state_bytes(recording, top.position)),
        define(TORCH, "never_freed", moved.never_freed_bytes, f"Not freed: {moved.never_freed:,}"),
    ]  # fmt: skip


def within_reach(recording: Recording) -> list[Figure]:
    """Return the bytes of the device that this process could get at its last out-of-memory failure, if any."""
    state, failure = recording.caching_allocator, recording.out_of_memory
    if state is None or state.reserved is None or failure is None or failure.free is None or not state.events:
        return []
    at = int(np.flatnonzero(state.events.isin({"oom"}))[-1])
    return [define(TORCH, "within_reach", int(state.reserved[at]) + failure.free)]


def retained_gradients_sentences(recording: Recording) -> list[str]:
    """Describe gradients and optimizer state that survive an iteration; empty without optimizer steps."""
    if not recording.kind.is_torch:
        return []
    found = retained_gradients(recording)
    if not len(found.position):
        return []
    count = len(found.position)
    times = f"{counted(count, 'iteration')} after a step of the optimizer"
    surviving = int((found.gradients > 0).sum())
    gradients = (
        f"Gradients survive into the next iteration: {bytes_text(int(found.gradients.max()))} of them are live when "
        f"{surviving:,} of the {times} {agree(count, 'begins', 'begin')}. optimizer.zero_grad(set_to_none=True) before "
        "the forward pass frees them for the activations."
        if surviving
        else f"Gradients do not survive into the next iteration: none are live when the {times} begin."
    )
    rows = recording.allocations
    kept = (rows.start >= 0) & (rows.end >= recording.length)
    if not (kept & (roles(recording) == Role.OPTIMIZER_STATE)).any():
        return [gradients]
    state = bytes_text(int(found.state.max()))
    return [gradients, f"The optimizer's state, {state}, is allocated in its first step in this trace."]
