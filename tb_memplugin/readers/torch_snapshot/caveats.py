"""Caveats about gaps and contradictions in a PyTorch snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.readers.common.limits import impossible_bytes
from tb_memplugin.readers.torch_snapshot.allocations.lifetimes import BlockLifetimes
from tb_memplugin.readers.torch_snapshot.contents.trace import Trace, TraceAction


def caveats(trace: Trace, lives: BlockLifetimes, settings: Mapping[str, Any], backwards: int) -> tuple[Caveat, ...]:
    """Return the caveats of one device. `backwards`: number of events earlier than the one before them."""
    found: list[Caveat] = []
    if not len(trace):
        text = "The snapshot has no event trace: it shows only the moment at which it was taken."
        found.append(Caveat("no_trace", text))
    old = lives.alloc_event < 0
    if len(trace) and old.any():
        why = (
            f"the event buffer of {settings.get('trace_alloc_max_entries', len(trace)):,} entries wrapped"
            if settings.get("trace_alloc_overflowed")
            else "recording started later, or the event buffer wrapped"
        )
        text = f"{old.sum():,} allocations predate the trace: {why}. They are live from before the first event."
        found.append(Caveat("older_than_trace", text, int(lives.size[old].sum())))
    if len(trace) and not (trace.time_us >= 0).any():
        text = "Events have no times, as before PyTorch 2.2; they are numbered instead."
        found.append(Caveat("no_time", text))
    for code, count, text in (
        (
            "address_taken",
            lives.address_taken,
            "allocations were made at an address in use; the earlier one is considered freed",
        ),
        (
            "not_in_segments",
            lives.unmatched,
            "allocations that the trace never frees are missing from the final blocks",
        ),
        (
            "estimated_size",
            lives.estimated_sizes,
            "blocks were freed before their size was recorded; it is a lower bound",
        ),
        ("time_backwards", backwards, "events are earlier than the previous event; they are shown at its time"),
        ("no_address", int((~trace.known & (trace.action == TraceAction.ALLOC)).sum()), "allocations have no address"),
        ("unknown_action", int((trace.action == TraceAction.OTHER).sum()), "events have an unknown action"),
    ):
        if count:
            found.append(Caveat(code, f"{count:,} {text}."))
    if len(trace) and not np.isin(trace.action, [TraceAction.FREE_REQUESTED, TraceAction.FREE_COMPLETED]).any():
        found.append(Caveat("no_frees", "The trace has no free events; recording them may have been disabled."))
    found += impossible_bytes(trace.impossible, "events have impossible sizes, which are ignored")
    return tuple(found)
