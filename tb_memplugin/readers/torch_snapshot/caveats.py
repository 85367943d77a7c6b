"""What a snapshot leaves out, with how many bytes it concerns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.readers.common.limits import impossible_bytes
from tb_memplugin.readers.torch_snapshot.lifetimes import Lives
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace


def caveats(trace: Trace, lives: Lives, settings: Mapping[str, Any], backwards: int) -> tuple[Caveat, ...]:
    found: list[Caveat] = []
    if not len(trace):
        text = "There is no trace of events: this is the moment at which the snapshot was taken."
        found.append(Caveat("no-trace", text))
    old = lives.born < 0
    if len(trace) and old.any():
        why = (
            f"the trace keeps its last {settings.get('trace_alloc_max_entries', len(trace)):,} events, and had more"
            if settings.get("trace_alloc_overflowed")
            else "it began later, or its ring of events was full"
        )
        text = f"{old.sum():,} allocations are older than the trace: {why}. They are live from before its first event."
        found.append(Caveat("older-than-trace", text, int(lives.size[old].sum())))
    if len(trace) and not (trace.time_us >= 0).any():
        text = "The trace tells no time, as before PyTorch 2.2: what stands for it are the numbers of its events."
        found.append(Caveat("no-time", text))
    for code, count, text in (
        ("taken-address", lives.taken, "allocations came to an address in use; the one before ended there, unseen"),
        ("not-in-segments", lives.lost, "allocations that the trace does not free are not among the last blocks"),
        ("guessed-size", lives.guessed, "blocks were freed before their size could be known; rounded, it is a least"),
        ("time-backwards", backwards, "events lie before the one they follow; they stand at its time"),
        ("no-address", int((~trace.known & (trace.action == Action.ALLOC)).sum()), "allocations have no address"),
        ("unknown-action", int((trace.action == Action.OTHER).sum()), "events are of an action we do not know"),
    ):
        if count:
            found.append(Caveat(code, f"{count:,} {text}."))
    if len(trace) and not np.isin(trace.action, [Action.FREE_REQUESTED, Action.FREE_COMPLETED]).any():
        found.append(Caveat("no-frees", "The trace has no free: it may have been told to leave them out."))
    found += impossible_bytes(trace.impossible, "events tell impossible sizes, which are left out")
    return tuple(found)
