"""Caveats about gaps and contradictions in an allocator's events."""

from __future__ import annotations

from collections.abc import Mapping

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode

EVENT_CAVEATS = {
    CaveatCode.UNNAMED: "name neither an allocator nor a device; they are assigned to one memory.",
    CaveatCode.NO_ADDRESS: "have an impossible address; their allocations and frees cannot be paired.",
    CaveatCode.ADDRESS_TAKEN: "allocate at an address that is in use; the earlier allocation is considered freed.",
    CaveatCode.IN_USE_MISSING: "do not report bytes in use; they are computed from the sizes of the events.",
    CaveatCode.FREE_MISSING: "do not report free bytes; the last reported value is used.",
    CaveatCode.IN_USE_DIFFERS: "change the bytes in use by more or less than their own size: some events are missing.",
    CaveatCode.SIZE_MISSING: "do not report a size; they count as 0 bytes.",
    CaveatCode.IMPOSSIBLE_BYTES: "report sizes below 0 or above 1 PiB; those are ignored.",
    CaveatCode.FRAGMENTATION_MISSING: "report no fragmentation between 0 and 1.",
    CaveatCode.OUT_OF_ORDER: "are earlier than the previous event on their thread; events are sorted by time.",
    CaveatCode.UNKNOWN_STATS: "have stats that this version does not read.",
    CaveatCode.UNKNOWN_DTYPE: "have an unknown data type.",
}


def caveats(
    before: int, orphaned: int, orphans: int, events: int, counts: Mapping[CaveatCode, int]
) -> tuple[Caveat, ...]:
    """Return the caveats of one allocator.

    `before`: bytes live when the recording started and not freed in it; negative where more was freed than was in use.
    `orphaned`: bytes live at the start and freed later, by `orphans` frees. `counts`: events per code of EVENT_CAVEATS.
    """
    found = []
    if before > 0 or orphans:
        freed = f" {orphans:,} of {events:,} events free part of it." if orphans else ""
        text = f"Allocated before the recording started; the allocation site is unknown.{freed}"
        found.append(Caveat(CaveatCode.LIVE_BEFORE, text, max(before, 0) + orphaned))
    if before < 0:
        found.append(
            Caveat(CaveatCode.FREED_MORE, "More bytes were freed than were in use when the recording started.", -before)
        )
    found += [
        Caveat(code, f"{counts[code]:,} of {events:,} events {EVENT_CAVEATS[code]}")
        for code in EVENT_CAVEATS
        if counts[code]
    ]
    return tuple(found)
