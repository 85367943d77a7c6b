"""How much room there is: what a recording needs, of how much, and who says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.recording import Recording

DEVICE_MEMORY = "HBM"  # what a program calls the memory that its device's allocator hands out
DEVICE_ALLOCATOR = re.compile(r"GPU_\d+_\w+|TPU core \d+|cuda:\d+")


class Headroom(NamedTuple):
    """Bytes; None where nothing tells."""

    needed: int
    capacity: int | None
    source: str  # who tells the capacity, in words
    left: int | None  # below 0: it did not fit


def headroom(recording: Recording) -> Headroom:
    needed = max(peak(recording).bytes, reserved_bytes(recording))
    capacity, source = recording.capacity, recording.capacity_source or "as the recording itself says"
    if refusal := recording.refusal:
        return Headroom(needed, refusal.capacity or capacity, "as the error says", _shortfall(recording))
    if not capacity:
        return Headroom(needed, None, "", None)
    return Headroom(needed, capacity, source, capacity - needed)


def with_device_limits(recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings of a file; each program of a device with the capacity that its device's allocator may hand out.

    It runs on any device of its host, so it must fit the smallest, and an allocator may not have all of that.
    """
    return [
        _with_device_limit(recording, device_allocators(recording.host, recordings))
        if recording.kind.has_program and recording.memory == DEVICE_MEMORY
        else recording
        for recording in recordings
    ]


def _with_device_limit(program: Recording, allocators: Sequence[Recording]) -> Recording:
    limits = [(a.capacity, f"the most that {a.memory} may hand out") for a in allocators if a.capacity]
    capacity, source = min(limits, default=(None, ""))
    if capacity is None or (program.capacity is not None and program.capacity <= capacity):
        return program
    return replace(program, capacity=capacity, capacity_source=source)


def device_allocators(host: str, recordings: Sequence[Recording]) -> list[Recording]:
    """The allocators of the host's devices."""
    return [
        recording
        for recording in recordings
        if recording.host == host and recording.kind.runs_programs and DEVICE_ALLOCATOR.fullmatch(recording.memory)
    ]


def _shortfall(recording: Recording) -> int | None:
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
