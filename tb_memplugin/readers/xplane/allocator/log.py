"""The events of one allocator, and what they say together: who ends what, how many bytes, and how much is in use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.text import Text
from tb_memplugin.readers.xplane.allocator.events import MISSING, AllocatorEvents, Mask
from tb_memplugin.readers.xplane.allocator.pairing import Pairs, pair
from tb_memplugin.readers.xplane.host.calls import HostCalls


@dataclass(frozen=True)
class AllocatorLog:
    """Columns have one entry per event, in order of time."""

    events: AllocatorEvents
    rows: I64  # of `events`, those that are this allocator's
    calls: HostCalls

    def __len__(self) -> int:
        return len(self.rows)

    def number(self, name: str) -> I64:
        return self.events.numbers[name][self.rows]

    def text(self, name: str) -> Text:
        return self.events.texts[name].take(self.rows)

    @cached_property
    def frame(self) -> I32:
        """The innermost frame that it was made in, -1 where nothing encloses it."""
        return self.calls.leaf[self.events.place[self.rows]]

    @cached_property
    def frees(self) -> Mask:
        return self.events.frees[self.rows]

    @cached_property
    def address(self) -> I64:
        return self.number("addr")

    @cached_property
    def pairs(self) -> Pairs:
        return pair(self.address, self.frees, self.address != MISSING)

    @cached_property
    def told_size(self) -> I64:
        """Bytes of its allocation, as placed; MISSING where nothing tells.

        TPU's frees do not say: theirs is their allocation's, else what the memory in use fell by.
        """
        partner, in_use = self.pairs.partner, self.number("bytes_allocated")
        size = self.number("allocation_bytes")
        size = np.where(size == MISSING, self.number("requested_bytes"), size)
        step = np.abs(np.diff(in_use, prepend=in_use[0]))
        step[(in_use == MISSING) | (np.r_[MISSING, in_use[:-1]] == MISSING)] = MISSING
        size = np.where(self.frees & (partner >= 0) & (size == MISSING), size[partner], size)
        return np.where(size == MISSING, step, size)

    @cached_property
    def size(self) -> I64:
        """The same, 0 where nothing tells."""
        return np.maximum(self.told_size, 0)

    @cached_property
    def requested(self) -> I64:
        """Bytes asked for; as placed where the event does not tell, which is no more than unknown padding."""
        requested = self.number("requested_bytes")
        return np.where(requested == MISSING, self.size, np.minimum(requested, self.size))

    @cached_property
    def change(self) -> I64:
        """Bytes by which it changes what is in use."""
        return np.where(self.frees, -self.size, self.size)

    @cached_property
    def in_use(self) -> I64:
        """Bytes in use after it; where it does not tell, what the last before it told, else the first after it, and
        what happened in between. Where none tells, the least that it can have been."""
        in_use = self.number("bytes_allocated")
        told = in_use != MISSING
        if told.all():
            return in_use
        change = np.cumsum(self.change)
        if not told.any():
            return change - min(0, int(change.min()))
        last = _last(told)
        filled: I64 = in_use[last] - change[last] + change
        return filled

    def last_told(self, name: str) -> I64:
        """What it tells, else the last before it that did, else the first; 0 where none does."""
        numbers = self.number(name)
        told = numbers != MISSING
        filled: I64 = numbers[_last(told)] if told.any() else np.zeros_like(numbers)
        return filled


def _last(told: Mask) -> I64:
    """Per event the last up to it that tells; before the first of those, the first. Some event tells."""
    last: I64 = np.maximum.accumulate(np.where(told, np.arange(len(told)), int(np.argmax(told))))
    return last
