"""The answer of a row, from the candidates compiled for it: the largest value, and how memory rises with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import lcm

import numpy as np

from tb_memplugin.model.fit import Knobs, LargestValue, MemoryLine, Outcome

MAX_ERROR = 0.02  # of a line that describes the memory


def largest_value(target: str, knobs: Knobs, searched: str, found: Mapping[int, Outcome]) -> LargestValue:
    """Return the answer; `found` are outcomes by value, at least one. Without a search it has one of any value."""
    fitting = [value for value, outcome in found.items() if outcome.fits]
    largest = found[max(fitting)] if fitting else None
    clean = [value for value in fitting if not found[value].rematerialized]
    return LargestValue(
        target,
        knobs,
        searched,
        largest=largest,
        last=largest or found[min(found)],
        without_recomputation=max(clean) if searched and clean else None,
        recomputed=tuple(found[value] for value in sorted(fitting) if found[value].rematerialized),
        at_end=bool(searched and fitting and max(fitting) == max(found)),
        failed=tuple(found[value] for value in sorted(found) if found[value].error),
        line=memory_line({value: found[value] for value in clean}) if searched else None,
    )


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
    """Compile values between the last one that the compiler leaves as it is and the first one where it recomputes."""
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


def memory_line(found: Mapping[int, Outcome]) -> MemoryLine | None:
    """Return the line of reserved bytes against the value; None where memory does not follow one."""
    values = np.array(sorted(found), dtype=np.float64)
    if len(values) < 2:
        return None
    reserved = np.array([found[int(value)].reserved_bytes or 0 for value in values], dtype=np.float64)
    slope, fixed = np.polyfit(values, reserved, 1)
    if slope <= 0 or fixed < 0 or np.abs(fixed + slope * values - reserved).max() > MAX_ERROR * reserved.max():
        return None
    roles = {role for outcome in found.values() for role in outcome.roles}
    at_zero = {
        role: float(np.polyfit(values, [found[int(value)].roles.get(role, 0) for value in values], 1)[1])
        for role in sorted(roles)
    }
    fixed_roles = sorted(
        ((int(size), role) for role, size in at_zero.items() if size > MAX_ERROR * fixed), reverse=True
    )
    return MemoryLine(int(fixed), int(slope), int(values[-1]), {role: size for size, role in fixed_roles})
