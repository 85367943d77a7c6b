"""How much room there is: what a recording needs, of how much, and who says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tb_memplugin.analysis.usage import peak, reserved
from tb_memplugin.recording import Recording

DEVICE_MEMORY = "HBM"  # what a program calls the memory that its device's allocator hands out
DEVICE_ALLOCATOR = re.compile(r"GPU_\d+_\w+|TPU core \d+|cuda:\d+")


class Headroom(NamedTuple):
    """Bytes; None where nothing tells."""

    needed: int
    capacity: int | None
    source: str  # who tells the capacity, in words
    left: int | None  # below 0: it did not fit


def headroom(recording: Recording, beside: Sequence[Recording]) -> Headroom:
    """`beside`: the other recordings of its run; an allocator's capacity is that of its device's programs too."""
    needed = max(peak(recording).bytes, reserved(recording))
    capacity, source = recording.capacity, "as the recording itself says"
    if recording.kind == "program" and recording.memory == DEVICE_MEMORY:
        capacity, source = _of_program(recording, beside)
    if refusal := recording.refusal:
        return Headroom(needed, refusal.capacity or capacity, "as the error says", _lacking(recording))
    if not capacity:
        return Headroom(needed, None, "", None)
    return Headroom(needed, capacity, source, capacity - needed)


def devices(host: str, recordings: Sequence[Recording]) -> list[Recording]:
    """The allocators of the host's devices."""
    return [
        recording
        for recording in recordings
        if recording.host == host and recording.kind == "allocator" and DEVICE_ALLOCATOR.fullmatch(recording.memory)
    ]


def _of_program(recording: Recording, beside: Sequence[Recording]) -> tuple[int | None, str]:
    """It runs on any device of its host, so it must fit the smallest, and an allocator may not have all of that."""
    known = [
        (device.capacity, f"the most that {device.memory} may hand out")
        for device in devices(recording.host, beside)
        if device.capacity
    ]
    if recording.capacity:
        known.append((recording.capacity, "the memory of the smallest device"))
    return min(known, default=(None, ""))


def _lacking(recording: Recording) -> int | None:
    """What was left, in one piece where that is told, less what was asked for; at least one byte was lacking."""
    refusal = recording.refusal
    if refusal is None or refusal.asked is None:
        return None
    left = refusal.free if refusal.largest_free is None else refusal.largest_free
    if left is None and refusal.capacity is not None and refusal.in_use is not None:
        left = refusal.capacity - refusal.in_use
    if left is None and refusal.capacity is not None and refusal.phase == "compile":
        left = refusal.capacity
    return None if left is None else min(left - refusal.asked, -1)
