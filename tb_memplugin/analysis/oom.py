"""The cause of an out-of-memory failure, from the sizes that its message reports."""

from __future__ import annotations

from enum import StrEnum

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording

ROUNDING = 100  # printed figures have three digits or two decimals, so their difference is off by less than 1 %


class Cause(StrEnum):
    HOST = "host memory"
    TOO_LARGE = "one allocation is larger than the memory"
    FRAGMENTED = "free memory is fragmented"
    LIVE = "too much memory is in use"
    UNKNOWN = "unknown"


def cause(failure: OutOfMemory) -> Cause:
    """Return the most specific cause that the reported sizes support; UNKNOWN if they are too few."""
    asked, free, largest = failure.asked, failure.free, failure.largest_free
    if failure.host:
        return Cause.HOST
    if asked is None:
        return Cause.UNKNOWN
    # A compiler's failure is about one allocation if it names what the memory is for, else about the whole program.
    # The limit of a kernel is less than the memory.
    one = (failure.phase is not OutOfMemoryPhase.COMPILE or bool(failure.wanted_by)) and not failure.kernel_limit
    if one and failure.capacity is not None and asked > failure.capacity:
        return Cause.TOO_LARGE
    if failure.phase is OutOfMemoryPhase.COMPILE:
        return Cause.LIVE
    if free is None:
        return Cause.UNKNOWN
    if asked > free:
        return Cause.LIVE
    # If one free block is large enough, these sizes do not explain the failure.
    return Cause.FRAGMENTED if largest is None or asked > largest else Cause.UNKNOWN


def missing_bytes(failure: OutOfMemory) -> int | None:
    """Return the bytes to free for the request to fit if free memory were contiguous; None if unknown."""
    if failure.asked is None:
        return None
    if failure.phase is OutOfMemoryPhase.COMPILE:
        computed = max(failure.asked - failure.capacity, 0) if failure.capacity is not None else None
        return failure.exceeded if _is_printed(computed, failure) else computed
    return max(failure.asked - failure.free, 0) if failure.free is not None else None


def _is_printed(computed: int | None, failure: OutOfMemory) -> bool:
    """Return whether the printed excess is the computed one, but for the rounding of the figures of the text."""
    if failure.exceeded is None or failure.asked is None:
        return False
    return computed is None or abs(computed - failure.exceeded) * ROUNDING <= failure.asked


def shortfall(failure: OutOfMemory) -> int | None:
    """Return by how much the request does not fit, at least 1; of free blocks the largest counts. None if unknown."""
    missing = missing_bytes(failure)
    if not missing and failure.asked is not None and failure.largest_free is not None:
        missing = failure.asked - failure.largest_free
    if missing is None and failure.asked is not None and failure.capacity is not None and failure.in_use is not None:
        missing = failure.asked - (failure.capacity - failure.in_use)
    return None if missing is None else max(missing, 1)


def required_bytes(recording: Recording) -> int:
    """Return the bytes that must fit: what a program reserves, as compilers compare with their limit, else the peak.

    After an out-of-memory failure: the bytes in use plus the failed request, or all that the program needs, if more.
    """
    failure = recording.out_of_memory
    used = reserved_bytes(recording) if recording.kind.has_program else peak(recording).bytes
    if failure is None or failure.phase is OutOfMemoryPhase.COMPILE:
        return used
    return max((failure.in_use or 0) + (failure.asked or 0), used)
