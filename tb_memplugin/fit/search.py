"""The largest value of a knob at which a program fits.

Memory is neither linear nor monotone in a batch: near the limit the compiler recomputes by itself. So lines through
compiled values only say where to look, every answer is compiled, and values above the answer are tried too. The search
takes little more than bisecting where the lines err, and few compiles where they do not.

Further values are compiled for what the step accepts, and for where recomputation begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm

from tb_memplugin.model.fit import Outcome


def compilable(values: range, devices: int, probe: Callable[[int], Outcome]) -> range:
    """Return the values that can be split over the devices: where the first one fails, only multiples of a number.

    A step on 4 x 4 devices may need a batch that is a multiple of 4, and fail for others.
    """
    if not probe(values[0]).error or (every := _multiples(values, devices)) is None or probe(every[0]).error:
        return values
    for unit in (unit for unit in range(2, devices) if devices % unit == 0):
        multiples = _multiples(values, unit)
        if multiples is not None and not probe(multiples[0]).error:
            return multiples
    return every


def _multiples(values: range, unit: int) -> range | None:
    """Return the multiples of a number among values; None without any."""
    first = next((value for value in values[:unit] if value % unit == 0), None)
    return None if first is None else range(first, values.stop, lcm(values.step, unit))


def last_before_recomputation(values: range, found: Mapping[int, Outcome], probe: Callable[[int], Outcome]) -> None:
    """Compile values until the last one without recomputation by the compiler is next to the first one with it."""
    clean = [value for value, outcome in found.items() if outcome.fits and not outcome.rematerialized]
    if not clean:
        return
    above = [value for value in found if value > max(clean)]
    if not above:
        return
    low, high = values.index(max(clean)), values.index(min(above))
    while high - low > 1:
        middle = (low + high) // 2
        outcome = probe(values[middle])
        low, high = (middle, high) if outcome.fits and not outcome.rematerialized else (low, middle)


SECOND = 31  # number of the second value: the middle of 1 to 1024 on a scale of ratios
GALLOP = 2  # how much further to look once a value fits
LOOK_AHEAD = (1, 4)  # steps above a value that does not fit
ENOUGH = 12  # compiles, after which nothing more is tried above the answer

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
        return self._finish(*self._bracket())

    def largest_from(self, number: int, guess: int) -> int | None:
        """Return the largest value found to fit, from the number of one that may, and from a guess; None if not."""
        if not self._fits(number):
            return None
        low, further, last = number, max(guess, number + 1), len(self.values) - 1
        while low < last and self._fits(min(further, last)):
            low = min(further, last)
            further = low + GALLOP * (low - number)
        return self._finish(low, self._next_refused(low))

    def _finish(self, low: int, high: int) -> int:
        """Narrow down, and try values above the answer."""
        while True:
            low, high = self._narrow(low, high)
            ahead = next((high + step for step in self._look_ahead() if self._fits(high + step)), None)
            if ahead is None:
                return self.values[low]
            low, high = ahead, self._next_refused(ahead)

    def _look_ahead(self) -> Iterator[int]:
        for step in LOOK_AHEAD:
            if len(self.tried) < ENOUGH:
                yield step

    def _fits(self, number: int) -> bool:
        if not 0 <= number < len(self.values):
            return False
        if number not in self.tried:
            self.tried[number] = self.probe(self.values[number])
        return self._fitted(self.tried[number])

    def _fitted(self, size: int | None) -> bool:
        return size is not None and size <= self.limit

    def _next_refused(self, low: int) -> int:
        """Return the next value above `low` that is known not to fit, or the end."""
        refused = (number for number, size in self.tried.items() if number > low and not self._fitted(size))
        return min(refused, default=len(self.values))

    def _bracket(self) -> tuple[int, int]:
        """Return a value that fits, and the next one known not to, or the end. Gallops, starting where a line says."""
        last = len(self.values) - 1
        low, further = 0, min(SECOND, last)
        while low < last and self._fits(further):
            guess = self._crossing(low, further) if low == 0 else None
            low, further = further, min(max(guess or 0, GALLOP * further), last)
        return low, self._next_refused(low)

    def _narrow(self, low: int, high: int) -> tuple[int, int]:
        """Narrow down to neighbours: by lines while they at least halve the rest, else by the middle in turns."""
        by_line = True
        while (width := high - low) > 1:
            guess = self._guess(low, high) if by_line else None
            middle = (low + high) // 2 if guess is None else min(max(guess, low + 1), high - 1)
            low, high = (middle, high) if self._fits(middle) else (low, middle)
            by_line = not by_line or high - low <= width // 2
        return low, high

    def _guess(self, low: int, high: int) -> int | None:
        """Return where memory meets the limit, by the line through two refused values, else through the two ends.

        Where the compiler has nothing left to recompute, memory rises in a line again; below, it is nearly flat.
        """
        refused = sorted(number for number, size in self.tried.items() if number >= high and size is not None)[:2]
        by_refused = self._crossing(*refused) if len(refused) == 2 else None
        if by_refused is not None and low < by_refused < high:
            return by_refused
        return self._crossing(low, high)

    def _crossing(self, first: int, second: int) -> int | None:
        """Return where the line through two values meets the limit; None where it does not rise."""
        a, b = self.tried.get(first), self.tried.get(second)
        if a is None or b is None or b <= a:
            return None
        return first + (self.limit - a) * (second - first) // (b - a)
