"""Values that a search compiles beside those that it needs: what the step accepts, and where recomputation begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
