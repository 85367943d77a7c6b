"""How much an allocator was asked for and given back, over all of its events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.recording import Recording

Mask = npt.NDArray[np.bool_]


class Traffic(NamedTuple):
    """Counts and bytes. What was live before or never freed shows as the difference."""

    allocations: int
    allocated_bytes: int
    frees: int
    freed_bytes: int
    freed_before: int  # frees of what was allocated before the recording
    freed_before_bytes: int
    live_before: int  # rows
    live_before_bytes: int
    never_freed: int
    never_freed_bytes: int


class StackCounts(NamedTuple):
    """How many of the allocations and of the frees have a stack."""

    allocations: int
    with_stack: int
    frees: int
    frees_with_stack: int


def traffic(recording: Recording) -> Traffic:
    rows = recording.allocations
    born, ended, freed = rows.start >= 0, rows.end < recording.length, _freed_rows(recording)

    def both(which: Mask) -> tuple[int, int]:
        return int(which.sum()), int(rows.size[which].sum())

    return Traffic(*both(born), *both(freed), *both(freed & ~born), *both(~born), *both(born & ~ended))


def count_stacks(recording: Recording) -> StackCounts:
    """Of the `complete` recording; before that, no stack is known."""
    rows, freed_in = recording.allocations, recording.free_stack
    born, freed = rows.start >= 0, _freed_rows(recording)
    known = 0 if freed_in is None else int((freed_in[freed] >= 0).sum())
    return StackCounts(int(born.sum()), int((rows.stack[born] >= 0).sum()), int(freed.sum()), known)


def _freed_rows(recording: Recording) -> Mask:
    rows = recording.allocations
    # An allocation at an address that is still taken ends the one before it, and is no free.
    opens = np.zeros(recording.length + 1, dtype=bool)
    opens[rows.start[rows.start >= 0]] = True
    freed: Mask = (rows.end < recording.length) & ~opens[rows.end]
    return freed
