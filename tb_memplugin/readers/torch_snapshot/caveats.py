"""Caveats about gaps and contradictions in a PyTorch snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.readers.common.limits import HAS, IS, WAS, counted_caveat, impossible_bytes
from tb_memplugin.readers.torch_snapshot.lifetimes import BlockLifetimes
from tb_memplugin.readers.torch_snapshot.trace import Trace, TraceAction
from tb_memplugin.sizes import agree, counted


def caveats(trace: Trace, lives: BlockLifetimes, settings: Mapping[str, Any], backwards: int) -> tuple[Caveat, ...]:
    """Return the caveats of one device. `backwards`: number of events earlier than the one before them."""
    found: list[Caveat] = []
    if not len(trace):
        text = "The snapshot has no event trace: it shows only the moment at which it was taken."
        found.append(Caveat(CaveatCode.NO_TRACE, text))
    old = lives.alloc_event < 0
    if len(trace) and old.any():
        entries = settings.get("trace_alloc_max_entries")
        why = (
            f"the event buffer of {entries if isinstance(entries, int) else len(trace):,} entries wrapped"
            if settings.get("trace_alloc_overflowed")
            else "recording started later, or the event buffer wrapped"
        )
        count = int(old.sum())
        text = (
            f"{counted(count, 'allocation')} {agree(count, 'predates', 'predate')} the trace: {why}. "
            f"{agree(count, 'It is', 'They are')} live from before the first event."
        )
        found.append(Caveat(CaveatCode.OLDER_THAN_TRACE, text, int(lives.size[old].sum())))
    if len(trace) and not (trace.time_us >= 0).any():
        text = "Events have no times, as before PyTorch 2.2; they are numbered instead."
        found.append(Caveat(CaveatCode.NO_TIME, text))
    for code, count, noun, verbs, rest in (
        (CaveatCode.ADDRESS_TAKEN, lives.address_taken, "allocation", WAS,
         "made at an address in use; the earlier one is considered freed"),
        (CaveatCode.NOT_IN_SEGMENTS, lives.unmatched, "allocation", IS,
         "never freed in the trace but missing from the final blocks"),
        (CaveatCode.ESTIMATED_SIZE, lives.estimated_sizes, "block", WAS,
         "freed before the size was recorded; it is a lower bound"),
        (CaveatCode.TIME_BACKWARDS, backwards, "event", IS,
         "earlier than the previous event; its time is used instead"),
        (CaveatCode.NO_ADDRESS, int((~trace.known & (trace.action == TraceAction.ALLOC)).sum()), "allocation", HAS,
         "no address"),
        (CaveatCode.UNKNOWN_ACTION, int((trace.action == TraceAction.OTHER).sum()), "event", HAS, "an unknown action"),
    ):  # fmt: skip
        found += counted_caveat(code, count, noun, verbs, rest)
    if len(trace) and not np.isin(trace.action, [TraceAction.FREE_REQUESTED, TraceAction.FREE_COMPLETED]).any():
        text = "The trace has no free events; recording them may have been disabled."
        found.append(Caveat(CaveatCode.NO_FREES, text))
    found += impossible_bytes(trace.impossible, "event", HAS, "impossible sizes, which are ignored")
    return tuple(found)
