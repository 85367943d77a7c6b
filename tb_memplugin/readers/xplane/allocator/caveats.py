"""What an allocator's events leave open, and how many of them do."""

from __future__ import annotations

from collections.abc import Mapping

from tb_memplugin.model.caveats import Caveat

COUNTED = {
    "unnamed": "name no allocator and no device; they are taken as one memory's.",
    "no_address": "have no address that can be: which free ends which allocation is not known.",
    "address_taken": "allocate at an address that is still taken; the allocation there is taken as ended.",
    "in_use_untold": "do not say how much is in use; it is added up.",
    "free_untold": "do not say how much is free; it is taken to be what it was.",
    "in_use_differs": "change what is in use by other than their own bytes: some events are missing.",
    "size_untold": "do not say how many bytes they are about; they count as 0.",
    "impossible_bytes": "give bytes below 0 or above 1 PiB; those figures are left out.",
    "fragmentation_untold": "give no fragmentation between 0 and 1.",
    "out_of_order": "are earlier than the one before them on their thread; they are sorted by time.",
    "unknown_stats": "carry figures that are not read.",
    "unknown_dtype": "are of a data type that is not known.",
}


def caveats(before: int, orphaned: int, orphans: int, events: int, counts: Mapping[str, int]) -> tuple[Caveat, ...]:
    """`before`: bytes live when the recording began and not freed in it, below 0 where more was freed than was in use;
    `orphaned`: bytes that were live then and freed in it, by so many frees, `orphans`; `counts`: how many of the events
    each of COUNTED is about."""
    found = []
    if before > 0 or orphans:
        freed = f"; {orphans:,} of the {events:,} events free part of it" if orphans else ""
        text = f"Live when the recording began, so who allocated it is not known{freed}."
        found.append(Caveat("live_before", text, max(before, 0) + orphaned))
    if before < 0:
        found.append(Caveat("freed_more", "More was freed than was in use when the recording began.", -before))
    found += [
        Caveat(code, f"{counts[code]:,} of {events:,} events {COUNTED[code]}") for code in COUNTED if counts[code]
    ]
    return tuple(found)
