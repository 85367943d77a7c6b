"""Figures of the latest sample by name, for Prometheus, Weights & Biases, MLflow and the like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from typing import NamedTuple

from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.readers.watch_layout import PHASE, CounterSource, fragmentation, free_bytes

PREFIX = "tb_memplugin"
# By name: the meaning, and the labels. The first ones are the counters of a device, in the order of DeviceColumn.
GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "memory_in_use_bytes": ("Memory in use on the device, or by the job on the host.", ("device",)),
    "memory_peak_bytes": ("The most memory in use since the process started.", ("device",)),
    "memory_limit_bytes": ("Memory that the allocator, or the cgroup, may use.", ("device",)),
    "memory_largest_free_block_bytes": ("The largest free block.", ("device",)),
    "memory_reserved_bytes": ("JAX: not available to the heap. PyTorch: requested from the device.", ("device",)),
    "memory_fragmentation_ratio": ("Free memory outside the largest free block.", ("device",)),
    "memory_part_bytes": ("Memory by holder, such as private memory and that of other processes.", ("device", "part")),
    "memory_growth_bytes_per_step": ("Growth of the least memory in use between steps.", ("device",)),
    "memory_growth_bytes_per_hour": ("The same growth where no steps are marked.", ("device",)),
    "memory_leak": ("1 where that growth is a leak, else 0.", ("device",)),
    "step": ("The training step that runs.", ()),
}


class Gauge(NamedTuple):
    """A figure: its name in GAUGES, the values of its labels, and its value."""

    name: str
    labels: tuple[str, ...]
    value: float

    @property
    def path(self) -> str:
        """Return one name for all, with labels: `tb_memplugin/memory_in_use_bytes/cuda:0`."""
        return "/".join((PREFIX, self.name, *self.labels))


def gauges_of(readings: Iterable[Reading], step: int) -> Iterator[Gauge]:
    """Yield the gauges of a sample. `step`: negative where none is marked."""
    for reading in readings:
        device = reading.device.name
        for name, value in zip(GAUGES, reading.counters, strict=False):
            if value >= 0:
                yield Gauge(name, (device,), value)
        in_use, _, limit, largest, reserved = reading.counters
        free = free_bytes(in_use, limit, 0 if reading.device.source is CounterSource.TORCH else max(reserved, 0))
        if not isnan(share := float(fragmentation(free, largest))):
            yield Gauge("memory_fragmentation_ratio", (device,), share)
        for part, size in reading.parts.items():
            if size >= 0 and not part.startswith(PHASE):
                yield Gauge("memory_part_bytes", (device, part), size)
    if step >= 0:
        yield Gauge("step", (), step)


def growth_of(content: bytes) -> list[Gauge]:
    """Return the growth of each memory of a watch file, with the verdict; none for those with too few samples."""
    from tb_memplugin.analysis.leaks.classify import floor_growth  # here, since most jobs need neither
    from tb_memplugin.readers.watch import open_watch

    found = []
    for recording in open_watch(content, "")[0].read():
        growth, labels = floor_growth(recording), (recording.memory,)
        if growth is not None:
            found.append(Gauge(f"memory_growth_bytes_per_{growth.unit}", labels, growth.bytes_per_unit))
            found.append(Gauge("memory_leak", labels, float(growth.grows)))
    return found
