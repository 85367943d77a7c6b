"""Snapshots of who holds the memory, beside the curve: when one is due, and saving it by the framework in use."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from tb_memplugin.capture import device_profiles
from tb_memplugin.capture.new_files import LogDir, create_file
from tb_memplugin.capture.profile_run import note_failure, save_quietly
from tb_memplugin.capture.watching.counters import Reading, started_jax, started_torch
from tb_memplugin.readers.watch_layout import UNKNOWN, DeviceColumn

# The share of the capacity by which memory in use must rise after a snapshot until the next one is due. So a job that
# stays above a limit of 90 % gets at most ten snapshots, not one a minute.
RISE_OF_CAPACITY = 0.01
# The floor is the least memory in use in a window. A window has at least this many samples, and contains the end of a
# step where the job marks steps.
WINDOW_SAMPLES = 30
# A leak makes new highest floors again and again; a job that loads or compiles makes a few.
GROWTH_RISES = 5
GROWTH_OF_CAPACITY = 0.05
GROWTH_OF_FLOOR = 0.25  # where the capacity is unknown
GROWTH_MIN_BYTES = 1 << 20
GROWTH_MIN_ARRAYS = 1000  # a leak of small arrays is a few MB beside large ones
# Reading many live arrays is expensive, so that their samples are far apart: 13.7 s for 7,300 arrays. They contain no
# temporaries, so that a window of so many seconds needs fewer of them.
WINDOW_SECONDS = 20.0
WINDOW_MIN_SAMPLES = 3


class Triggers:
    """Decides after each sample whether a snapshot is due. `at`: the share of the capacity that is nearly full."""

    def __init__(self, at: float) -> None:
        self._at = at
        self._levels: dict[str, _Level] = {}

    def reason(self, readings: Iterable[Reading], step: int) -> str:
        """Return the reason for a snapshot now; empty for none. The same is returned again until `saved`."""
        found = ""
        for name, in_use, limit, kind in _levels(readings):
            level = self._levels.setdefault(name, _Level(*kind))
            level.add(in_use, limit, step)
            if level.is_nearly_full(self._at):
                found = f"{100 * self._at:g} % of capacity"
            elif level.grows():
                found = found or "growth"
        return found

    def saved(self) -> None:
        """Take the present levels as the base of later decisions."""
        for level in self._levels.values():
            level.saved()


def _levels(readings: Iterable[Reading]) -> Iterator[tuple[str, int, int, tuple[int, float]]]:
    """Yield name, value, limit, and fields of a _Level, of the bytes in use and of the number of live arrays."""
    for reading in readings:
        name, counters = reading.device.name, reading.counters
        seconds = WINDOW_SECONDS if reading.arrays >= 0 else inf
        yield name, counters[DeviceColumn.IN_USE], counters[DeviceColumn.LIMIT], (GROWTH_MIN_BYTES, seconds)
        if reading.arrays >= 0:
            yield f"arrays of {name}", reading.arrays, UNKNOWN, (GROWTH_MIN_ARRAYS, seconds)


@dataclass
class _Level:
    least: int  # growth
    seconds: float  # of a window with few samples
    in_use: int = UNKNOWN
    limit: int = UNKNOWN
    saved_share: float = 0.0  # of the capacity, at the last snapshot
    base: int = UNKNOWN  # the first floor, or the one at the last snapshot
    highest: int = UNKNOWN  # floor so far
    rises: int = 0  # of the highest floor, since the base
    floor: int = UNKNOWN  # of the last complete window
    window: _Window = field(default_factory=lambda: _Window())

    def add(self, in_use: int, limit: int, step: int) -> None:
        if in_use < 0:
            return
        self.in_use, self.limit = in_use, limit
        if not self.window.add(in_use, step, self.seconds):
            return
        self.floor, self.window = self.window.floor, _Window()
        if self.base < 0:
            self.base = self.highest = self.floor
        elif self.floor > self.highest:
            self.highest, self.rises = self.floor, self.rises + 1

    def share(self) -> float:
        return self.in_use / self.limit if self.limit > 0 else 0.0

    def is_nearly_full(self, at: float) -> bool:
        return self.share() >= max(at, self.saved_share + RISE_OF_CAPACITY)

    def grows(self) -> bool:
        enough = GROWTH_OF_CAPACITY * self.limit if self.limit > 0 else GROWTH_OF_FLOOR * self.base
        return self.rises >= GROWTH_RISES and self.floor - self.base >= max(enough, self.least)

    def saved(self) -> None:
        self.saved_share = max(self.saved_share, self.share())
        self.base, self.rises = self.highest, 0


@dataclass
class _Window:
    floor: int = UNKNOWN
    samples: int = 0
    first_step: int = UNKNOWN
    began: float = field(default_factory=lambda: time.monotonic())

    def add(self, in_use: int, step: int, seconds: float) -> bool:
        """Return whether the window is complete with this sample."""
        self.floor = in_use if self.samples == 0 else min(self.floor, in_use)
        self.first_step = step if self.samples == 0 else self.first_step
        self.samples += 1
        is_long = time.monotonic() - self.began >= seconds
        enough = self.samples >= (WINDOW_MIN_SAMPLES if is_long else WINDOW_SAMPLES)
        return enough and (step < 0 or step != self.first_step)


def save_snapshot(logdir: LogDir, step: int | None, reason: str) -> None:
    """Save a JAX device profile, or a PyTorch snapshot without history. Never raises."""
    if started_jax() is not None:
        device_profiles.save_profile(logdir, step, reason)
    elif started_torch() is not None:
        save_quietly(logdir, None, step, _save_torch)


def save_after(logdir: LogDir, error: BaseException) -> None:
    """Save a snapshot after an out-of-memory error as on_oom does. Never raises."""
    if started_jax() is not None:
        device_profiles.save_after(logdir, error)
    elif started_torch() is not None:
        note_failure(logdir, None, error, _save_torch)


def _save_torch(path: str) -> str:
    """Save PyTorch's segments and blocks, with stacks where the job records them."""
    torch = started_torch()
    assert torch is not None
    return create_file(f"{path}.pickle", torch.cuda.memory._dump_snapshot)
