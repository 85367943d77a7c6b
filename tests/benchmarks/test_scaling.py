"""Processor time of the first view over the size of the profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks.first_view import first_views
from benchmarks.profiles import events, program, samples, snapshot

TIMES = 8  # as large
# A method that took the square of the size would need eight times this factor at sizes where it matters.
MAX_RATIO = 2.5 * TIMES


def seconds(write: Callable[[Path], None], logdir: Path) -> float:
    write(logdir)
    (file,) = (path for path in logdir.rglob("*") if path.is_file())
    return min(first_views(file).processor for _ in range(3))


@pytest.mark.parametrize(
    ("write", "size"),
    [(program, 2_500), (lambda n, logdir: events(n, n // 10, logdir), 40_000), (snapshot, 3_000), (samples, 5_000)],
    ids=["buffers", "events", "snapshot", "samples"],
)
def test_the_first_view_of_eight_times_the_work_takes_about_eight_times_as_long(
    write: Callable[[int, Path], None], size: int, tmp_path: Path
) -> None:
    small = seconds(partial(write, size), tmp_path / "small")
    large = seconds(partial(write, TIMES * size), tmp_path / "large")
    assert large < MAX_RATIO * small
