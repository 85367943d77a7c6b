"""The distribution of peaks over the devices of a fleet, and the devices that are far from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.fleet import DEVICE_MEMORY, Device, Fleet

# A device is an outlier beyond 6 standard deviations, estimated by the median distance from the median, which outliers
# do not move. Of 8,192 devices with normal noise, one is beyond in 60,000 captures. Peaks of equal programs differ by
# less than 1 % through the order of allocations alone.
SIGMAS, MAD_TO_SIGMA = 6, 1.4826
FLOOR_SHARE = 0.01
FLOOR_BYTES = 1 << 20
MIN_DEVICES = 3


class Peaks(NamedTuple):
    """Peaks of the devices with one memory, in bytes."""

    memory: str
    devices: Sequence[Device]
    median: int
    p95: int
    smallest: int
    largest: int
    worst: Device
    typical: Device  # with the peak that is nearest to the median
    outliers: Sequence[Device]  # largest distance from the median first
    limit: float  # of the distance from the median: outliers are beyond
    apart: Mapping[str, int]  # medians of devices that are beyond it on most hosts, by name, as in `GPU_1`

    def distance(self, device: Device) -> int:
        """Return how far a device is above the median, in bytes; negative below it.

        Devices of a name that is apart are compared with each other.
        """
        return device.summary.peak_bytes - self.apart.get(device.summary.device, self.median)

    @property
    def spread(self) -> float:
        """The largest minus the smallest peak, relative to the median."""
        return (self.largest - self.smallest) / self.median if self.median else 0.0


def peaks_by_memory(fleet: Fleet) -> list[Peaks]:
    """Return the peaks of each memory: the devices' own first, then by the bytes of the largest peak."""
    groups: dict[str, list[Device]] = {}
    for device in fleet.devices:
        groups.setdefault(device.summary.memory, []).append(device)
    found = [peaks_of(memory, devices) for memory, devices in groups.items()]
    return sorted(found, key=lambda peaks: (peaks.memory != DEVICE_MEMORY, -peaks.largest))


def peaks_of(memory: str, devices: Sequence[Device]) -> Peaks:
    """Return the distribution over devices, of which there is at least one."""
    peak = np.array([device.summary.peak_bytes for device in devices], dtype=np.int64)
    median = float(np.median(peak))
    apart = _apart([device.summary.device for device in devices], peak, median)
    usual = np.array([apart.get(device.summary.device, median) for device in devices])
    distance = np.abs(peak - usual)
    limit = _limit(distance, median)
    far = np.flatnonzero(distance > limit)
    order = far[np.argsort(-distance[far], kind="stable")]
    return Peaks(
        memory,
        devices,
        round(median),
        int(np.percentile(peak, 95, method="higher")),
        int(peak.min()),
        int(peak.max()),
        devices[int(np.argmax(peak))],
        devices[int(np.argmin(np.abs(peak - median)))],
        [devices[index] for index in order.tolist()],
        limit,
        {name: round(of_name) for name, of_name in apart.items()},
    )


def _apart(names: Sequence[str], peak: I64, median: float) -> dict[str, float]:
    """Return the medians of the names that are far from the median on most hosts, such as a device with larger inputs.

    Without this, each of them would be an outlier, and a host on which it differs from the others would not.
    """
    distinct, which, count = np.unique(np.array(names), return_inverse=True, return_counts=True)
    medians = np.full(len(distinct), median)
    for name in np.flatnonzero(count >= MIN_DEVICES).tolist():
        medians[name] = np.median(peak[which == name])
    limit = _limit(np.abs(peak - medians[which]), median)
    far = np.flatnonzero(np.abs(medians - median) > limit)
    return {str(distinct[name]): float(medians[name]) for name in far.tolist()}


def _limit(distance: F64, median: float) -> float:
    """Return the distance beyond which devices are outliers, of all distances. Of two devices, neither is one."""
    if len(distance) < MIN_DEVICES:
        return np.inf
    return max(SIGMAS * MAD_TO_SIGMA * float(np.median(distance)), FLOOR_SHARE * median, FLOOR_BYTES)
