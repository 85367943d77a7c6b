"""The time of samples and steps, which does not jump when the machine's clock is set."""

from __future__ import annotations

import time
from functools import partial

# On Linux, a clock that goes on while the machine is suspended, unlike the monotonic one.
_elapsed_ns = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns
)


class WatchClock:
    """Nanoseconds since 1970, counted from the machine's time when the watch was made."""

    def __init__(self) -> None:
        self._start_ns = max(time.time_ns(), 0) - _elapsed_ns()

    def now_ns(self) -> int:
        return self._start_ns + _elapsed_ns()
