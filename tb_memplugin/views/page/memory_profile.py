"""The first view of a recording over time: its figures, its headline, and the largest allocations at the peak."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_memplugin.analysis.address.fragmentation import fragmentation
from tb_memplugin.analysis.usage.figures import Figure
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.traffic import traffic
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.sizes import bytes_text, counted
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import RECORDING
from tb_memplugin.views.page import torch_profile
from tb_memplugin.views.page.first_view import encode_first_view
from tb_memplugin.views.page.usage import FIRST_BUCKETS, usage_over_time


@endpoint("memory_profile", RECORDING, report=InReport(lambda recording: recording.axis is Axis.TIME))
def first_view(recording: Recording) -> bytes:
    """Return the first view of a recording over time."""
    recording = recording.outline  # the rest takes longer to read, and follows with api/rows
    usage = usage_over_time(recording, 0, recording.length, FIRST_BUCKETS)
    return encode_first_view(recording, headline(recording), figures(recording), usage)


def headline(recording: Recording) -> str:
    """The answer in words."""
    if recording.kind.is_torch:
        return torch_profile.headline(recording)
    top = peak(recording)
    of = f" of {bytes_text(recording.capacity)}" if recording.capacity else ""
    when = _seconds(recording, top.position)
    moved = traffic(recording)
    reserved = _at(recording.reported, top.position)["reserved"]
    # Allocations and frees say nothing of the stack, which may be all of the peak and held to the end.
    stack = f", {bytes_text(reserved)} of it stack, which programs reserve" if reserved else ""
    kept = f"{bytes_text(moved.never_freed_bytes)} of the new memory was not freed by the end"
    return (
        f"Peak {bytes_text(top.bytes)}{of} on {recording.memory}, {when} into the profile{stack}. "
        f"{counted(moved.allocations, 'allocation')} and {counted(moved.frees, 'free')}; "
        f"{kept if moved.never_freed_bytes else 'all of the new memory was freed by the end'}."
    )


def _seconds(recording: Recording, position: int) -> str:
    clock = recording.clock
    return f"{clock[position] / 1e9:.3f} s" if clock is not None and len(clock) else "0 s"


def figures(recording: Recording) -> list[Figure]:
    """In the order in which they are read."""
    if recording.kind.is_torch:
        return torch_profile.figures(recording)
    top = peak(recording)
    said = _at(recording.reported, top.position)
    moved = traffic(recording)
    return [
        Figure("live_peak", "Peak", top.bytes, "The most that was in use at one moment: heap and stack."),
        Figure("capacity", "Capacity", recording.capacity,
               "What this memory holds: in use, reserved and free together."),
        Figure("reported_peak", "Lifetime peak of the heap" if said["reserved"] else "Lifetime peak",
               recording.reported_peak,
               "The most in use since the allocator began, as it says itself; it may lie before the profile."),
        Figure("heap", "Heap at the peak", said["in_use"], "Allocated memory at the peak."),
        Figure("stack", "Stack at the peak", said["reserved"], "Reserved for running programs at the peak."),
        Figure("free", "Free at the peak", said["free"] if recording.capacity else None, "What was left at the peak."),
        Figure("fragmented", "Fragmented at the peak", said["fragmented"] if recording.capacity else None,
               "Free memory outside the largest free block: a larger request would fail though the bytes are there."),
        _largest_free(recording, top.position),
        Figure("allocated", f"Allocated in {moved.allocations:,}", moved.allocated_bytes,
               "All allocations of the profile together, counted over every event."),
        Figure("freed", f"Freed in {moved.frees:,}", moved.freed_bytes,
               "All frees of the profile together, those of earlier memory included."),
        Figure("freed_before", f"Freed from before: {moved.freed_before:,}", moved.freed_before_bytes,
               "Frees of what was allocated before the profile began, so that no allocation here matches them."),
        Figure("live_before", "Live before", moved.live_before_bytes,
               "In use when the profile began, so who allocated it is not known."),
        Figure("never_freed", f"Not freed: {moved.never_freed:,}", moved.never_freed_bytes,
               "Allocated in the profile and still live at its end."),
    ]  # fmt: skip


def _largest_free(recording: Recording, position: int) -> Figure:
    pieces = fragmentation(recording)
    known = position < recording.length and not np.isnan(pieces.largest_free[position])
    text = "The largest request that the memory left at the peak could have met in one piece"
    # Addresses tell of holes between blocks, and not of what lies beyond the last.
    text += "." if pieces.reported else ", at least: it is the largest hole between live blocks."
    return Figure("largest_free", "Largest free block", int(pieces.largest_free[position]) if known else None, text)


def _at(reported: ReportedMemory | None, position: int) -> dict[str, Any]:
    if reported is None or not len(reported.in_use):
        return {"in_use": None, "reserved": None, "free": None, "fragmented": None}
    free, fraction = int(reported.free[position]), float(reported.fragmentation[position])
    return {
        "in_use": int(reported.in_use[position]),
        "reserved": int(reported.reserved[position]),
        "free": free,
        "fragmented": round(free * fraction) if 0 <= fraction <= 1 else None,
    }
