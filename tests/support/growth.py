"""The growth of processor time with the size of work: a ratio, which holds on slow and busy machines."""

from __future__ import annotations

import time
from collections.abc import Callable

TRIALS = 5
TIMES = 8  # larger is the second size
SLACK = 2.5  # a quadratic algorithm takes 8 times the proportion
UNNOTICED_SECONDS = 0.1  # noise may take as long; a quadratic algorithm takes longer at the sizes of tests


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Return whether work of 8 times the size takes at most 2.5 times the proportion, in the best of some trials.

    Other processes only ever make work slower, so that one good trial is enough.
    """
    return any(
        seconds_of(work, TIMES * size) <= SLACK * TIMES * seconds_of(work, size) + UNNOTICED_SECONDS
        for _ in range(TRIALS)
    )


def seconds_of(work: Callable[[int], object], size: int) -> float:
    begun = time.process_time()
    work(size)
    return time.process_time() - begun
