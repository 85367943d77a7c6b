"""Daily runs of one job, in which one day's change raises the peak."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.pods.pod import START, Pod
from benchmarks.pods.tasks import GIB, Call, Extra, Lifetime
from benchmarks.pods.truth import Capture

CHANGE = Extra(Call("model.py", 112, "attention", "attention"), 3 * GIB // 2, Lifetime.STEP)
CHANGED_BUFFERS = 600  # of the program after the change, which is also larger


class Trend(NamedTuple):
    """The days in order, one capture each."""

    days: list[Capture]
    changed: str  # the run of the first day with the change
    source_line: str
    bytes: int


def write_trend(pod: Pod, logdir: Path, days: int) -> Trend:
    """Write `<logdir>/<date>/plugins/profile/<session>/<host>.xplane.pb` for each day up to START.

    The change comes after two thirds of the days.
    """
    after = replace(pod, extras=(*pod.extras, CHANGE), buffers=CHANGED_BUFFERS)
    first = max(days * 2 // 3, 1)
    captures = []
    for day in range(days):
        start = START - timedelta(days=days - 1 - day)
        captures.append((pod if day < first else after).write(logdir, start.strftime("%Y-%m-%d"), start))
    return Trend(captures, captures[first].run, CHANGE.call.source_line, CHANGE.bytes)
