"""Events of one allocator, with their pairing, sizes and bytes in use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.text import Text
from tb_memplugin.native.xplane.stats import MISSING
from tb_memplugin.readers.common.rows import Pairs, pair
from tb_memplugin.readers.xplane.allocator.events import AllocatorEvents

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class AllocatorLog:
    """The events of one allocator; each column has one entry per event, ordered by time."""

    events: AllocatorEvents
    rows: I64  # this allocator's rows of `events`

    def __len__(self) -> int:
        return len(self.rows)

    def of_own(self, column: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return a column of `events` for this allocator's rows; most profiles have one allocator, and need no copy."""
        return column if len(self.rows) == len(self.events) else column[self.rows]

    def number(self, name: str) -> I64:
        return self.of_own(self.events.numbers[name])

    def text(self, name: str) -> Text:
        column = self.events.texts[name]
        return Text(self.of_own(column.codes), column.strings)

    @cached_property
    def frees(self) -> Mask:
        return self.of_own(self.events.frees)

    @cached_property
    def address(self) -> I64:
        return self.number("addr")

    @cached_property
    def pairs(self) -> Pairs:
        return pair(self.address, self.frees, self.address != MISSING)

    @cached_property
    def reported_size(self) -> I64:
        """Bytes of the event's allocation, as placed; MISSING where they cannot be found.

        Frees on TPU have no size. A free then has its allocation's size, else the decrease of the bytes in use.
        """
        size = _filled(self.number("allocation_bytes"), lambda: self.number("requested_bytes"))
        size = _filled(
            size, lambda: np.where(self.frees & (self.pairs.partner >= 0), size[self.pairs.partner], MISSING)
        )
        return _filled(size, self._steps)

    def _steps(self) -> I64:
        """Return the change of the bytes in use by each event, MISSING where it is unknown."""
        in_use = self.number("bytes_allocated")
        step = np.abs(np.diff(in_use, prepend=in_use[0]))
        step[(in_use == MISSING) | (np.r_[MISSING, in_use[:-1]] == MISSING)] = MISSING
        return step

    @cached_property
    def size(self) -> I64:
        """`reported_size`, with 0 for MISSING."""
        return np.maximum(self.reported_size, 0)

    @cached_property
    def requested(self) -> I64:
        """Bytes requested; where the event has no such number, the bytes as placed, as the padding is then unknown."""
        requested = self.number("requested_bytes")
        return np.where(requested == MISSING, self.size, np.minimum(requested, self.size))

    @cached_property
    def change(self) -> I64:
        """Bytes that the event adds to the bytes in use; negative for a free."""
        return np.where(self.frees, -self.size, self.size)

    @cached_property
    def in_use(self) -> I64:
        """Bytes in use after each event.

        An event without the number gets it from the last event before that has it, else from the first after, plus the
        changes in between, but at least 0: events may be missing. Where no event has it, the series is the lowest that
        never falls below 0.
        """
        in_use = self.number("bytes_allocated")
        present = in_use != MISSING
        if present.all():
            return in_use
        change = np.cumsum(self.change)
        if not present.any():
            return change - min(0, int(change.min()))
        last = _last_present(present)
        found: I64 = np.maximum(in_use[last] - change[last] + change, 0)
        return found

    def forward_fill(self, name: str) -> I64:
        """Return a number per event: its own, else the last before it, else the first; all 0 where no event has it."""
        numbers = self.number(name)
        present = numbers != MISSING
        if present.all():
            return numbers
        filled: I64 = numbers[_last_present(present)] if present.any() else np.zeros_like(numbers)
        return filled


def _filled(numbers: I64, others: Callable[[], I64]) -> I64:
    """Return the numbers, with the others where they are MISSING; the others are made only where some are."""
    missing = numbers == MISSING
    return np.where(missing, others(), numbers) if missing.any() else numbers


def _last_present(present: Mask) -> I64:
    """Return, per event, the last present event up to it, else the first present one. At least one is present."""
    last: I64 = np.maximum.accumulate(np.where(present, np.arange(len(present)), int(np.argmax(present))))
    return last
