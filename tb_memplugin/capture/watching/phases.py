"""Phases of a step, such as rollout and training, and the memory in use during each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.readers.watch_layout import MAX_LABEL, PHASE, DeviceColumn

MAX_PHASES = 16


class Phase(NamedTuple):
    """A phase that runs. `token` differs between two runs of it."""

    name: str
    token: object


class PhaseLevels:
    """The memory in use of each device during a phase, as a named column of its samples."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._last: Phase | None = None
        self._peaks: dict[str, int] = {}  # by device, at the last sample

    def add_to(self, readings: Iterable[Reading], phase: Phase | None) -> list[Reading]:
        """Return the readings with the column of the phase; of MAX_PHASES phases at most.

        Where the whole time since the last sample is of this phase, a new peak of the device's counter is the phase's.
        """
        found, is_same = list(readings), phase is not None and phase == self._last
        name = f"{PHASE}{phase.name}"[:MAX_LABEL] if phase is not None and isinstance(phase.name, str) else ""
        if name and (name in self._names or len(self._names) < MAX_PHASES):
            self._names.add(name)
            found = [one._replace(parts={**one.parts, name: self._level(one, is_same)}) for one in found]
        self._last = phase
        self._peaks = {one.device.name: one.counters[DeviceColumn.PEAK] for one in found}
        return found

    def _level(self, reading: Reading, is_same: bool) -> int:
        peak = reading.counters[DeviceColumn.PEAK]
        rose = is_same and peak > self._peaks.get(reading.device.name, peak)
        return peak if rose else reading.counters[DeviceColumn.IN_USE]
