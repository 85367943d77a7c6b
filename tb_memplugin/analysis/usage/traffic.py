"""Allocated and freed bytes over all of an allocator's events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import Mask
from tb_memplugin.model.recording import Recording


class Traffic(NamedTuple):
    """Counts and bytes. Allocations and frees differ by what was live before the recording or never freed."""

    allocations: int
    allocated_bytes: int
    frees: int
    freed_bytes: int
    freed_before: int  # frees of allocations from before the recording
    freed_before_bytes: int
    live_before: int  # rows
    live_before_bytes: int
    never_freed: int
    never_freed_bytes: int


class StackCounts(NamedTuple):
    """The number of allocations and frees, and how many of them have a call stack."""

    allocations: int
    with_stack: int
    frees: int
    frees_with_stack: int


def traffic(recording: Recording) -> Traffic:
    """Count the allocations and frees of a recording, with their bytes."""
    rows = recording.allocations
    recorded, ended, freed = rows.start >= 0, rows.end < recording.length, _freed_rows(recording)

    def count_and_bytes(which: Mask) -> tuple[int, int]:
        return int(which.sum()), int(rows.size[which].sum())

    return Traffic(
        *count_and_bytes(recorded),
        *count_and_bytes(freed),
        *count_and_bytes(freed & ~recorded),
        *count_and_bytes(~recorded),
        *count_and_bytes(recorded & ~ended),
    )


def count_stacks(recording: Recording) -> StackCounts:
    """Count the allocations and frees that have a call stack."""
    rows, free_stack = recording.allocations, recording.free_stack
    recorded, freed = rows.start >= 0, _freed_rows(recording)
    with_stack = 0 if free_stack is None else int((free_stack[freed] >= 0).sum())
    return StackCounts(int(recorded.sum()), int((rows.stack[recorded] >= 0).sum()), int(freed.sum()), with_stack)


def _freed_rows(recording: Recording) -> Mask:
    rows = recording.allocations
    # An allocation at an address in use ends the one before it. That is not a free.
    opens = np.zeros(recording.length + 1, dtype=bool)
    opens[rows.start[rows.start >= 0]] = True
    freed: Mask = (rows.end < recording.length) & ~opens[rows.end]
    return freed
