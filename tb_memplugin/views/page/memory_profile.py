"""What the Memory Profile is given: an allocator's own figures, its use over time, what is live at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_memplugin.analysis.address.fragmentation import fragmentation
from tb_memplugin.analysis.linking.runtime_to_program import link_to_programs
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.usage.figures import Figure
from tb_memplugin.analysis.usage.live_bytes import buckets, peak
from tb_memplugin.analysis.usage.live_bytes import usage as usage_of
from tb_memplugin.analysis.usage.traffic import traffic
from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.page import torch_profile
from tb_memplugin.views.page.memory_viewer import FIRST_BUCKETS, encode_first_view
from tb_memplugin.views.shared.payload import Table, encode, narrow

PLANNED_LISTED = 20


def first_view(recording: Recording) -> bytes:
    """Figures, the curve and the largest allocations at the peak, as tables."""
    curve = usage_table(recording, 0, recording.length, FIRST_BUCKETS)
    return encode_first_view(recording, headline(recording), figures(recording), curve)


def usage(recording: Recording, start: int, end: int, count: int) -> bytes:
    """The curve over positions [start, end) in at most `count` buckets, as a table."""
    return encode({"from": start, "to": end}, {"usage": usage_table(recording, start, end, count)})


def usage_table(recording: Recording, start: int, end: int, count: int) -> Table:
    """The curve in buckets, with the time of each bucket's first event in ns, and what the allocator says of itself.

    Of each figure the most and the least: `heap` and `stack`, which `live` is the sum of, `free`, `largest_free` and
    `fragmentation`, 0 to 1. NaN where it is not known.
    """
    curve = buckets(usage_of(recording), start, end, count)
    clock = recording.clock
    time = clock[curve.position] if clock is not None else curve.position
    stop = min(end, recording.length)
    said = {
        f"{name}_{which}": reduce.reduceat(column[:stop], curve.position) if len(curve.position) else column[:0]
        for name, column in _said(recording).items()
        for which, reduce in (("max", np.fmax), ("min", np.fmin))
    }
    return {**curve._asdict(), "position": narrow(curve.position), "time_ns": time.astype(np.int64), **said}


@memoize
def _said(recording: Recording) -> dict[str, I64 | F64]:
    """What the allocator says of itself, and how its free memory lies, at every event."""
    pieces, reported = fragmentation(recording), recording.reported
    if recording.held is not None:  # free is what this process keeps for itself
        free = (recording.held - usage_of(recording).live).astype(np.float64)
        return {"held": recording.held, "free": free, "largest_free": pieces.largest_free}
    if reported is None:
        return {"largest_free": pieces.largest_free}
    nothing = np.full(recording.length, np.nan)
    return {
        "heap": reported.in_use,
        "stack": reported.reserved,
        "free": reported.free if recording.capacity else nothing,
        "largest_free": pieces.largest_free,
        "fragmentation": reported.fragmentation if pieces.told else nothing,
    }


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
        f"{moved.allocations} allocations and {moved.frees} frees; "
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
    text += "." if pieces.told else ", at least: it is the largest hole between live blocks."
    return Figure("largest_free", "Largest free block", int(pieces.largest_free[position]) if known else None, text)


def planned(recording: Recording, row: int, programs: Sequence[Recording]) -> dict[str, Any] | None:
    """The program that a runtime allocation was made for, and the buffers planned inside it, largest first."""
    joined = link_to_programs(recording, programs)
    if joined.program[row] < 0:
        return None
    program, region = programs[joined.program[row]], int(joined.region[row])
    rows = program.allocations
    inside = np.flatnonzero(rows.region == region)
    inside = inside[np.argsort(-rows.size[inside], kind="stable")]
    return {
        "recording": program.id,
        "title": program.title,
        "memory": program.memory,
        "kind": RegionKind(int(program.regions.kind[region])).label,
        "size": int(program.regions.size[region]),
        "buffers": [
            {"row": i, "name": rows.name[i], "op_name": rows.scope[i], "size": int(rows.size[i])}
            for i in inside[:PLANNED_LISTED].tolist()
        ],
        "buffers_total": len(inside),
    }


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
