"""Faults that are planted in a pod, and the figures that a reader must find in it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from benchmarks.pods.tasks import GIB, MIB, Call, Extra, Lifetime

OUTLIER = Extra(Call("checkpoint.py", 88, "device_put"), 21 * GIB // 10 // 512 * 512, Lifetime.SPAN)
LEAK = Extra(Call("metrics.py", 41, "record"), 24 * MIB, Lifetime.KEPT)
DAMAGES = ("truncated", "garbage", "empty")  # in turn


@dataclass(frozen=True, slots=True)
class Faults:
    """The number of hosts or devices with each fault. A healthy pod has none."""

    outliers: int = 0  # devices with the allocation OUTLIER
    leaks: int = 0  # hosts whose devices all have LEAK
    missing: int = 0  # hosts without a file, not the first or the last one
    damaged: int = 0  # hosts with a damaged file
    other_programs: int = 0  # hosts whose program has the same name and memory, and other contents


HEALTHY = Faults()


@dataclass(frozen=True, slots=True)
class Device:
    """A device with its figures in bytes, of a readable file."""

    host: str
    memory: str
    peak_bytes: int
    capacity_bytes: int


@dataclass(frozen=True, slots=True)
class Planted:
    """An allocation that other devices do not have."""

    host: str
    memory: str
    source_line: str  # as in `checkpoint.py:88`
    function: str
    bytes: int  # of a leak: in each step


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture: a file for each host that is there, in a session or several."""

    run: str
    sessions: dict[str, list[str]]  # the hosts of each session's folder
    devices: list[Device]
    programs: int  # number of distinct programs
    outliers: list[Planted]
    leaks: list[Planted]
    missing: list[str]  # hosts
    damaged: dict[str, str]  # host to damage
    other_programs: list[str]  # hosts

    @property
    def median_bytes(self) -> float:
        return median(device.peak_bytes for device in self.devices)
