"""The largest value of a knob at which a program fits.

Memory is neither linear nor monotone in a batch: near the limit the compiler recomputes by itself. So lines through
compiled values only suggest the next value, every answer is compiled, and values above the answer are tried too. Where
the lines are right the search takes few compilations, and where they are wrong little more than a bisection.

Further values are compiled to find which values the step accepts, and where recomputation begins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm

from tb_memplugin.model.fit import Outcome


def compilable(values: range, devices: int, probe: Callable[[int], Outcome]) -> range:
    """Return the values that can be split over the devices: all, or if the first one fails, multiples of some number.

    For example, a step on 4 x 4 devices may fail unless its batch is a multiple of 4.
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
    """Compile values until the last one without recomputation by the compiler is followed by the first one with it."""
    clean = [value for value, outcome in found.items() if outcome.fits and not outcome.rematerialized]
    above = [value for value in found if clean and value > max(clean)]
    if not above:
        return
    low, high = values.index(max(clean)), values.index(min(above))
    while high - low > 1:
        middle = (low + high) // 2
        outcome = probe(values[middle])
        low, high = (middle, high) if outcome.fits and not outcome.rematerialized else (low, middle)


SECOND = 31  # index of the second value to compile: of 1 to 1024, the middle on a logarithmic scale, 32
GALLOP = 2  # after a value that fits, the next one to try is at least this many times as far from the start
LOOK_AHEAD = (1, 4)  # values to try above the answer: so many steps above the first one that does not fit
ENOUGH = 12  # after this many compilations, values above the answer are no longer tried

Probe = Callable[[int], int | None]  # bytes that a value reserves; None where it cannot be compiled


@dataclass
class Search:
    """A search among `values`, in rising order. `tried` has the reserved bytes by the index of the value.

    `is_rising`: memory rises with the value, as where nothing recomputes by itself, so that lines are trusted more.
    """

    values: Sequence[int]
    limit: int
    probe: Probe
    tried: dict[int, int | None] = field(default_factory=dict)
    is_rising: bool = False

    def largest(self) -> int | None:
        """Return the largest value found to fit; None if the smallest does not. Gallop from where a line points."""
        if not self._fits(0):
            return None
        low, last = 0, len(self.values) - 1
        further = min(SECOND, last)
        while low < last and self._fits(further):
            before, low = low, further
            further = min(self._further(before, low, GALLOP * low), last)
        return self._finish(low, self._next_refused(low))

    def largest_from(self, number: int, guess: int) -> int | None:
        """Return the largest value found to fit, starting with one that may fit, then a guess; None if none fits."""
        if not self._fits(number):
            return None
        low, further, last = number, max(guess, number + 1), len(self.values) - 1
        while low < last and self._fits(min(further, last)):
            low = min(further, last)
            further = self._further(number, low, low + GALLOP * (low - number))
        return self._finish(low, self._next_refused(low))

    def _finish(self, low: int, high: int) -> int:
        """Narrow down, and try values above the answer."""
        while True:
            low, high = self._narrow(low, high)
            if self.is_rising:
                return self.values[low]
            steps = (step for step in LOOK_AHEAD if len(self.tried) < ENOUGH and self._fits(high + step))
            ahead = next((high + step for step in steps), None)
            if ahead is None:
                return self.values[low]
            low, high = ahead, self._next_refused(ahead)

    def _fits(self, number: int) -> bool:
        if not 0 <= number < len(self.values):
            return False
        if number not in self.tried:
            self.tried[number] = self.probe(self.values[number])
        return self._fitted(self.tried[number])

    def _fitted(self, size: int | None) -> bool:
        return size is not None and size <= self.limit

    def _next_refused(self, low: int) -> int:
        """Return the first value above `low` that is known not to fit, or the end."""
        refused = (number for number, size in self.tried.items() if number > low and not self._fitted(size))
        return min(refused, default=len(self.values))

    def _further(self, before: int, low: int, gallop: int) -> int:
        """Return the value to try after two that fit: where their line meets the limit, or further."""
        crossing = self._crossing(before, low) if before == 0 or self.is_rising else None
        return max(crossing or gallop, low + 1) if self.is_rising else max(crossing or 0, gallop)

    def _narrow(self, low: int, high: int) -> tuple[int, int]:
        """Narrow down to neighbors: with a line, and with the middle after a line that did not halve the rest."""
        by_line = True
        while (width := high - low) > 1:
            guess = self._guess(low, high) if by_line else None
            middle = (low + high) // 2 if guess is None else min(max(guess, low + 1), high - 1)
            low, high = (middle, high) if self._fits(middle) else (low, middle)
            by_line = not by_line or high - low <= width // 2
        return low, high

    def _guess(self, low: int, high: int) -> int | None:
        """Estimate where memory meets the limit, from the line through two refused values, else through the two ends.

        Once the compiler has nothing left to recompute, memory rises linearly with the value; before, it hardly rises.
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
