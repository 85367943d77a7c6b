"""Caveats about gaps and contradictions in an allocator's events."""

from __future__ import annotations

from collections.abc import Mapping

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.sizes import agree, counted

# Per code: the verb for one event, the verb for several, and the rest of the sentence.
EVENT_CAVEATS = {
    CaveatCode.UNNAMED: (
        "names",
        "name",
        "neither an allocator nor a device; such events are assigned to one memory.",
    ),
    CaveatCode.NO_ADDRESS: ("has", "have", "an impossible address; such allocations and frees cannot be paired."),
    CaveatCode.ADDRESS_TAKEN: (
        "allocates",
        "allocate",
        "at an address in use; the earlier allocation is considered freed.",
    ),
    CaveatCode.IN_USE_MISSING: (
        "does",
        "do",
        "not report bytes in use; this is computed from the sizes of the events.",
    ),
    CaveatCode.FREE_MISSING: ("does", "do", "not report free bytes; the last reported value is used."),
    CaveatCode.IN_USE_DIFFERS: (
        "changes",
        "change",
        "the bytes in use by more or less than the event's size: some events are missing.",
    ),
    CaveatCode.SIZE_MISSING: ("does", "do", "not report a size; a missing size counts as 0 bytes."),
    CaveatCode.IMPOSSIBLE_BYTES: ("reports", "report", "sizes below 0 or above 1 PiB; those are ignored."),
    CaveatCode.FRAGMENTATION_MISSING: ("reports", "report", "no fragmentation between 0 and 1."),
    CaveatCode.OUT_OF_ORDER: (
        "is",
        "are",
        "earlier than the previous event on the same thread; events are sorted.",
    ),
    CaveatCode.UNKNOWN_STATS: ("has", "have", "stats that this version does not read."),
    CaveatCode.UNKNOWN_DTYPE: ("has", "have", "an unknown data type."),
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
        freed = (
            f" {orphans:,} of {counted(events, 'event')} {agree(orphans, 'frees', 'free')} part of it."
            if orphans
            else ""
        )
        text = f"Allocated before the recording started; the allocation site is unknown.{freed}"
        found.append(Caveat(CaveatCode.LIVE_BEFORE, text, max(before, 0) + orphaned))
    if before < 0:
        found.append(
            Caveat(CaveatCode.FREED_MORE, "More bytes were freed than were in use when the recording started.", -before)
        )
    for code, (singular, plural, rest) in EVENT_CAVEATS.items():
        if count := counts[code]:
            verb = agree(count, singular, plural)
            found.append(Caveat(code, f"{count:,} of {counted(events, 'event')} {verb} {rest}"))
    return tuple(found)
