"""How the processor time of work grows with its size: a ratio, which holds on slow and busy machines."""

from __future__ import annotations

import time
from collections.abc import Callable

TRIALS = 5
TIMES = 8  # larger is the second size
SLACK = 3.0  # a quadratic algorithm takes 8 times the proportion
UNNOTICED_SECONDS = 0.1  # too short to be told from noise: a quadratic algorithm takes longer at the sizes of tests


def grows_linearly(work: Callable[[int], object], size: int, *, slack: float = SLACK) -> bool:
    """Whether work of 8 times the size takes at most `slack` times the proportion, in the best of some trials.

    Other processes only ever make work slower, so that one good trial is enough.
    """
    small = seconds_of(work, size)
    for _ in range(TRIALS):
        if seconds_of(work, TIMES * size) <= slack * TIMES * small + UNNOTICED_SECONDS:
            return True
        small = max(small, seconds_of(work, size))
    return False


def seconds_of(work: Callable[[int], object], size: int) -> float:
    begun = time.process_time()
    work(size)
    return time.process_time() - begun
