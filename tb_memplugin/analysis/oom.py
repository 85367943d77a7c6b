"""Why a memory refused, from the numbers that are known of it."""

from __future__ import annotations

from enum import StrEnum

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording


class Cause(StrEnum):
    HOST = "host memory"
    TOO_LARGE = "one allocation is larger than the memory"
    FRAGMENTED = "free memory is in pieces"
    LIVE = "too much is live"
    UNKNOWN = "unknown"


def cause(refusal: OutOfMemory) -> Cause:
    asked, free, largest = refusal.asked, refusal.free, refusal.largest_free
    if refusal.host:
        return Cause.HOST
    if asked is None:
        return Cause.UNKNOWN
    # What a compiler asks for is one allocation where it says for what, else all of a program's.
    one = refusal.phase is not OutOfMemoryPhase.COMPILE or bool(refusal.wanted_by)
    if one and refusal.capacity is not None and asked > refusal.capacity:
        return Cause.TOO_LARGE
    if refusal.phase is OutOfMemoryPhase.COMPILE:
        return Cause.LIVE
    if free is None:
        return Cause.UNKNOWN
    if asked > free:
        return Cause.LIVE
    # As much is free in one piece as was asked: something that these numbers do not tell of.
    return Cause.FRAGMENTED if largest is None or asked > largest else Cause.UNKNOWN


def missing_bytes(refusal: OutOfMemory) -> int | None:
    """Bytes that must go for it to fit, if what is free were one piece; None where that is not known."""
    if refusal.asked is None:
        return None
    if refusal.phase is OutOfMemoryPhase.COMPILE:
        return max(refusal.asked - refusal.capacity, 0) if refusal.capacity is not None else None
    return max(refusal.asked - refusal.free, 0) if refusal.free is not None else None


def required_bytes(recording: Recording) -> int:
    """Bytes that would have had to fit: what was in use, and what was asked on top of it."""
    refusal, used = recording.refusal, peak(recording).bytes
    if refusal is None or refusal.phase is OutOfMemoryPhase.COMPILE:
        return used
    return (refusal.in_use or 0) + (refusal.asked or 0)
