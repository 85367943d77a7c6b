"""Headroom: the bytes that a recording needs, the capacity, and the source of that figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tb_memplugin.analysis.oom import required_bytes, shortfall
from tb_memplugin.model.recording import Recording

DEVICE_MEMORY = "HBM"  # a program's name for the memory that its device's allocator manages
DEVICE_ALLOCATOR = re.compile(r"GPU_\d+_\w+|TPU core \d+|cuda:\d+")


class Headroom(NamedTuple):
    """Bytes; None if unknown."""

    needed: int
    capacity: int | None
    source: str  # of the capacity, in words
    left: int | None  # negative if the memory ran out


def headroom(recording: Recording) -> Headroom:
    """Return how many bytes are left above those that must fit, as `check` compares them with its limit."""
    needed = required_bytes(recording)
    capacity, source = recording.capacity, recording.capacity_source or "from the recording"
    if failure := recording.out_of_memory:
        lacking = shortfall(failure)
        left = None if lacking is None else -lacking
        return Headroom(needed, failure.capacity or capacity, "from the error message", left)
    if not capacity:
        return Headroom(needed, None, "", None)
    return Headroom(needed, capacity, source, capacity - needed)


def with_device_limits(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings of a file, with the device programs' capacity lowered to their allocator's limit.

    A program may run on any device of its host, so the smallest limit counts. An allocator's limit may be below the
    device's memory.
    """
    return [
        _with_device_limit(recording, device_allocators(recording.host, recordings))
        if recording.kind.has_program and recording.memory == DEVICE_MEMORY
        else recording
        for recording in recordings
    ]


def _with_device_limit(program: Recording, allocators: Sequence[Recording]) -> Recording:
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
