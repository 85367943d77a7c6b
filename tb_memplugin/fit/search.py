"""The largest value of a knob at which a program fits.

Memory is neither linear nor monotone in a batch: near the limit the compiler recomputes by itself. So a line through
two points only says where to look, every answer is compiled, and values just above the answer are tried too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

FIRST_STEP = 7  # from the first value to the second one: far enough for a slope
LOOK_AHEAD = (1, 3)  # steps above a value that does not fit

Probe = Callable[[int], int | None]  # bytes that a value reserves; None where it cannot be compiled


@dataclass
class Search:
    """A search among `values`, in rising order. `tried` are the numbers of the values with their bytes."""

    values: Sequence[int]
    limit: int
    probe: Probe
    tried: dict[int, int | None] = field(default_factory=dict)

    def largest(self) -> int | None:
        """Return the largest value found to fit; None if the smallest does not."""
        if not self._fits(0):
            return None
        low, high = self._bracket()
        while True:
            low, high = self._bisect(low, high)
            ahead = next((high + step for step in LOOK_AHEAD if self._fits(high + step)), None)
            if ahead is None:
                return self.values[low]
            low, high = self._rise(ahead)

    def _fits(self, number: int) -> bool:
        if not 0 <= number < len(self.values):
            return False
        if number not in self.tried:
            self.tried[number] = self.probe(self.values[number])
        size = self.tried[number]
        return size is not None and size <= self.limit

    def _bracket(self) -> tuple[int, int]:
        """Return a value that fits, and a larger one that does not, or the end."""
        second = min(FIRST_STEP, len(self.values) - 1)
        if not self._fits(second):
            return 0, second
        guess = self._crossing(0, second)
        if not self._fits(guess):
            return second, guess
        return self._rise(guess + 1) if self._fits(guess + 1) else (guess, min(guess + 1, len(self.values)))

    def _rise(self, low: int) -> tuple[int, int]:
        """Double from a value that fits until one does not."""
        end = len(self.values)
        while low < end - 1:
            further = min(max(2 * low, low + 1), end - 1)
            if not self._fits(further):
                return low, further
            low = further
        return low, end

    def _crossing(self, first: int, second: int) -> int:
        """Return where the line through two values meets the limit; twice the second where it does not rise."""
        a, b = self.tried[first], self.tried.get(second)
        if a is None or b is None or b <= a:
            return min(2 * second, len(self.values) - 1)
        return min(first + int((self.limit - a) * (second - first) / (b - a)), len(self.values) - 1)

    def _bisect(self, low: int, high: int) -> tuple[int, int]:
        """Narrow down to neighbours. The middle is tried in turns with the line, which may err to one side always."""
        by_line = True
        while high - low > 1:
            middle = self._crossing(low, high) if by_line and high in self.tried else (low + high) // 2
            middle = min(max(middle, low + 1), high - 1)
            low, high = (middle, high) if self._fits(middle) else (low, middle)
            by_line = not by_line
        return low, high
