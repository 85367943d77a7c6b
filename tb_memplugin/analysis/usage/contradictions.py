"""Contradictions between a recording's events, and the caveats about them."""

from __future__ import annotations

from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.recording import Recording

# Caveats that put the figures of a recording in doubt, not only their origin.
IN_DOUBT = {
    CaveatCode.ADDRESS_TAKEN,
    CaveatCode.FREED_MORE,
    CaveatCode.IMPOSSIBLE_BYTES,
    CaveatCode.IMPOSSIBLE_SIZES,
    CaveatCode.INCONSISTENT_EVENTS,
    CaveatCode.IN_USE_DIFFERS,
    CaveatCode.MORE_THAN_IN_USE,
    CaveatCode.TOTAL_DIFFERS,
}
TEXT = "At the peak, live allocations add up to more than the bytes in use, so shares of the peak are unknown:"


def excess_bytes(recording: Recording) -> int:
    """Return by how much the rows that are live at the peak exceed the bytes in use, as the allocator reports them."""
    top = peak(recording)
    if recording.reported is None or not 0 <= top.position < recording.length:
        return 0
    return max(int(explained_bytes(recording)[top.position]) - top.bytes, 0)


def caveats(recording: Recording) -> tuple[Caveat, ...]:
    """Return the recording's caveats, with one about rows that exceed the bytes in use."""
    excess = excess_bytes(recording)
    more = (Caveat(CaveatCode.MORE_THAN_IN_USE, TEXT, excess),) if excess else ()
    return (*recording.caveats, *more)


def doubts(recording: Recording) -> list[Caveat]:
    """Return the caveats that put the figures of a recording in doubt."""
    return [caveat for caveat in caveats(recording) if caveat.code in IN_DOUBT]
