"""Caveats about gaps and contradictions in a PyTorch snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.readers.common.limits import impossible_bytes
from tb_memplugin.readers.torch_snapshot.allocations.lifetimes import BlockLifetimes
from tb_memplugin.readers.torch_snapshot.contents.trace import Trace, TraceAction


def caveats(trace: Trace, lives: BlockLifetimes, settings: Mapping[str, Any], backwards: int) -> tuple[Caveat, ...]:
    """Return the caveats of one device. `backwards`: number of events earlier than the one before them."""
    found: list[Caveat] = []
    if not len(trace):
        text = "The snapshot has no event trace: it shows only the moment at which it was taken."
        found.append(Caveat(CaveatCode.NO_TRACE, text))
    old = lives.alloc_event < 0
    if len(trace) and old.any():
        why = (
            f"the event buffer of {settings.get('trace_alloc_max_entries', len(trace)):,} entries wrapped"
            if settings.get("trace_alloc_overflowed")
            else "recording started later, or the event buffer wrapped"
        )
        text = f"{old.sum():,} allocations predate the trace: {why}. They are live from before the first event."
        found.append(Caveat(CaveatCode.OLDER_THAN_TRACE, text, int(lives.size[old].sum())))
    if len(trace) and not (trace.time_us >= 0).any():
        text = "Events have no times, as before PyTorch 2.2; they are numbered instead."
        found.append(Caveat(CaveatCode.NO_TIME, text))
    for code, count, text in (
        (
            CaveatCode.ADDRESS_TAKEN,
            lives.address_taken,
            "allocations were made at an address in use; the earlier one is considered freed",
        ),
        (
            CaveatCode.NOT_IN_SEGMENTS,
            lives.unmatched,
            "allocations that the trace never frees are missing from the final blocks",
        ),
        (
            CaveatCode.ESTIMATED_SIZE,
            lives.estimated_sizes,
            "blocks were freed before their size was recorded; it is a lower bound",
        ),
        (
            CaveatCode.TIME_BACKWARDS,
            backwards,
            "events are earlier than the previous event; they are shown at its time",
        ),
        (
            CaveatCode.NO_ADDRESS,
            int((~trace.known & (trace.action == TraceAction.ALLOC)).sum()),
            "allocations have no address",
        ),
        (CaveatCode.UNKNOWN_ACTION, int((trace.action == TraceAction.OTHER).sum()), "events have an unknown action"),
    ):
        if count:
            found.append(Caveat(code, f"{count:,} {text}."))
    if len(trace) and not np.isin(trace.action, [TraceAction.FREE_REQUESTED, TraceAction.FREE_COMPLETED]).any():
        found.append(
            Caveat(CaveatCode.NO_FREES, "The trace has no free events; recording them may have been disabled.")
        )
    found += impossible_bytes(trace.impossible, "events have impossible sizes, which are ignored")
    return tuple(found)
