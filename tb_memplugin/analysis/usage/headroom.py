"""Headroom: the bytes that a recording needs and the capacity, and the cause of an out-of-memory failure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.kinds import DEVICE_MEMORY
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording

FRAGMENTS = 100  # a choice: no memory is in so many pieces that each is smaller than a hundredth of what is free
ROUNDING = 100  # printed figures have three digits or two decimals, so their difference is off by less than 1 %


class Cause(StrEnum):
    HOST = "host memory"
    TOO_LARGE = "one allocation is larger than the memory"
    FRAGMENTED = "free memory is fragmented"
    LIVE = "too much memory is in use"
    UNEXPLAINED = "the figures do not explain it"
    UNKNOWN = "unknown"


def cause(failure: OutOfMemory) -> Cause:
    """Return the most specific cause that the reported sizes support; UNKNOWN if they are too few."""
    asked, free, largest = failure.asked, failure.free, failure.largest_free
    if failure.host:
        return Cause.HOST
    if asked is None:
        return Cause.UNKNOWN
    # A compiler's failure is about one allocation if it names the allocation's purpose, else about the whole program.
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
    enough = free >= FRAGMENTS * asked if largest is None else largest >= asked
    return Cause.UNEXPLAINED if enough else Cause.FRAGMENTED


def missing_bytes(failure: OutOfMemory) -> int | None:
    """Return the bytes to free for the request to fit if free memory were contiguous; None if unknown."""
    if failure.asked is None:
        return None
    if failure.phase is OutOfMemoryPhase.COMPILE:
        computed = max(failure.asked - failure.capacity, 0) if failure.capacity is not None else None
        printed = failure.exceeded
        if printed is None or (computed is not None and abs(computed - printed) * ROUNDING > failure.asked):
            return computed
        return printed  # which differs only by the rounding of the printed figures
    return max(failure.asked - failure.free, 0) if failure.free is not None else None


def shortfall(failure: OutOfMemory) -> int | None:
    """Return the bytes that a request lacks, at least 1: in total, else in the largest free block. None if unknown."""
    missing = missing_bytes(failure)
    if not missing and failure.asked is not None and failure.largest_free is not None:
        missing = failure.asked - failure.largest_free
    if missing is None and failure.asked is not None and failure.capacity is not None and failure.in_use is not None:
        missing = failure.asked - (failure.capacity - failure.in_use)
    return None if missing is None else max(missing, 1)


def required_bytes(recording: Recording) -> int:
    """Return the bytes that must fit: of a program, those that it reserves, as compilers compare these; else the peak.

    After an out-of-memory failure: the bytes in use plus the failed request, or the bytes the program needs, if more.
    """
    failure = recording.out_of_memory
    used = reserved_bytes(recording) if recording.kind.has_program else peak(recording).bytes
    if failure is None or failure.phase is OutOfMemoryPhase.COMPILE:
        return used
    return max((failure.in_use or 0) + (failure.asked or 0), used)


DEVICE_ALLOCATOR = re.compile(r"GPU_\d+_\w+|TPU core \d+|cuda:\d+")


class Headroom(NamedTuple):
    """Bytes; None if unknown."""

    needed: int
    capacity: int | None
    source: str  # of the capacity, in words
    left: int | None  # negative if the memory ran out


def headroom(recording: Recording) -> Headroom:
    """Return the capacity minus the bytes that must fit, which `check` compares with its limit."""
    needed = required_bytes(recording)
    capacity, source = recording.capacity, recording.capacity_source or "from the recording"
    if failure := recording.out_of_memory:
        lacking = shortfall(failure)
        left = None if lacking is None else -lacking
        return Headroom(needed, failure.capacity or capacity, "from the error message", left)
    if not capacity:
        return Headroom(needed, None, "", None)
    return Headroom(needed, capacity, source, capacity - needed)


def fits_after(recording: Recording, saved: int) -> bool | None:
    """Return whether a recording fits its memory if it needs so many bytes less; None if the memory is unknown."""
    left = headroom(recording).left
    return None if left is None else left + saved >= 0


def with_device_limits(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings of a file, with the device programs' capacity lowered to their allocator's limit.

    A program may run on any device of its host, so the smallest limit counts. An allocator's limit may be below the
    device's memory.
    """
    return [_with_device_limit(recording, recordings) for recording in recordings]


def _with_device_limit(program: Recording, recordings: Sequence[Recording]) -> Recording:
    if not program.kind.has_program or program.memory != DEVICE_MEMORY:
        return program
    allocators = device_allocators(program.host, recordings)
    limits = [(a.capacity, f"the limit of {a.memory}") for a in allocators if a.capacity]
    capacity, source = min(limits, default=(None, ""))
    if capacity is None or (program.capacity is not None and program.capacity <= capacity):
        return program
    return replace(program, capacity=capacity, capacity_source=source)


def device_allocators(host: str, recordings: Sequence[Recording]) -> list[Recording]:
    """Return the allocators of the host's devices."""
    return [
        recording
        for recording in recordings
        if recording.host == host and recording.kind.runs_programs and DEVICE_ALLOCATOR.fullmatch(recording.memory)
    ]
