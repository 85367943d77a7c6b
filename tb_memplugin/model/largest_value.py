"""The answer for a choice, from the candidates compiled for it: the largest value, and how memory rises with it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tb_memplugin.model.fit import Knobs, LargestValue, MemoryLine, Outcome

MAX_ERROR = 0.02  # of a line that describes the memory


def largest_value(target: str, knobs: Knobs, searched: str, found: Mapping[int, Outcome]) -> LargestValue:
    """Return the answer; `found` are outcomes by value, at least one. Without a search it has one of any value."""
    fitting = answers(found)
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


def answers(found: Mapping[int, Outcome]) -> list[int]:
    """Return the values that fit.

    Where the compiler refused one at the end of its compilation, those that may be refused too are left out, if they
    are above the largest value that is certain.
    """
    fitting = [value for value, outcome in found.items() if outcome.fits]
    certain = max((value for value in fitting if not found[value].doubtful), default=None)
    if certain is None or not any(outcome.refused for outcome in found.values()):
        return fitting
    return [value for value in fitting if value <= certain]


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
