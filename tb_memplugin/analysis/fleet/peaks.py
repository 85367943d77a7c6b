"""The largest sites of a recording, and over a fleet: peaks, outliers, and the sites that cause them."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.ownership.source_lines import LINE, base_name, source_frames
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED, group_by_site, live_rows, unexplained_bytes
from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.fleet import MAX_SITES, Device, Fleet, Site
from tb_memplugin.model.kinds import DEVICE_MEMORY, Axis
from tb_memplugin.model.recording import Recording

# A device is an outlier beyond 6 standard deviations, which are estimated from the median distance from the median, as
# outliers do not move it. With 8,192 devices and normal noise, 1 of 60,000 captures has a false outlier. The order of
# allocations alone changes the peaks of equal programs by less than 1 %.
SIGMAS, MAD_TO_SIGMA = 6, 1.4826
FLOOR_SHARE = 0.01
FLOOR_BYTES = 1 << 20
MIN_DEVICES = 3


class Peaks(NamedTuple):
    """Peaks of the devices with one memory, in bytes."""

    memory: str
    devices: Sequence[Device]
    median_bytes: int
    p95_bytes: int
    smallest_bytes: int
    largest_bytes: int
    worst: Device
    typical: Device  # with the peak that is nearest to the median
    outliers: Sequence[Device]  # largest distance from the median first
    limit: float  # the largest distance from the median that is not an outlier's
    apart: Mapping[str, int]  # by device name, as in `GPU_1`: the median, if it is beyond the limit on most hosts

    def distance(self, device: Device) -> int:
        """Return a device's distance from the median, in bytes; negative below it.

        Devices of a name that is apart are compared with each other.
        """
        return device.summary.peak_bytes - self.apart.get(device.summary.device, self.median_bytes)

    @property
    def spread(self) -> float:
        """The largest minus the smallest peak, relative to the median."""
        return (self.largest_bytes - self.smallest_bytes) / self.median_bytes if self.median_bytes else 0.0


def peaks_by_memory(fleet: Fleet) -> list[Peaks]:
    """Return the peaks of each memory: the devices' own first, then by the bytes of the largest peak."""
    groups: dict[str, list[Device]] = {}
    for device in fleet.devices:
        groups.setdefault(device.summary.memory, []).append(device)
    found = [peaks_of(memory, devices) for memory, devices in groups.items()]
    return sorted(found, key=lambda peaks: (peaks.memory != DEVICE_MEMORY, -peaks.largest_bytes))


def peaks_of(memory: str, devices: Sequence[Device]) -> Peaks:
    """Return the distribution over one or more devices."""
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
    """Return the medians of device names that are far from the median on most hosts, such as one with larger inputs.

    Otherwise, that device would be an outlier on every host, except on a host where it differs from the other hosts.
    """
    distinct, which, count = np.unique(np.array(names), return_inverse=True, return_counts=True)
    medians = np.full(len(distinct), median)
    for name in np.flatnonzero(count >= MIN_DEVICES).tolist():
        medians[name] = np.median(peak[which == name])
    limit = _limit(np.abs(peak - medians[which]), median)
    far = np.flatnonzero(np.abs(medians - median) > limit)
    return {str(distinct[name]): float(medians[name]) for name in far.tolist()}


def _limit(distance: F64, median: float) -> float:
    """Return the distance beyond which devices are outliers; infinite for fewer than MIN_DEVICES devices."""
    if len(distance) < MIN_DEVICES:
        return np.inf
    return max(SIGMAS * MAD_TO_SIGMA * float(np.median(distance)), FLOOR_SHARE * median, FLOOR_BYTES)


# TensorFlow's operations have the number of the replica in their names.
REPLICA = re.compile(r"\breplica_\d+/")
MAX_CAUSES = 3
MIN_SHARE = 0.1  # a choice: a cause explains at least this share of the device's distance from the median
SAMPLE = 512  # usual bytes are medians over at most so many devices, evenly spaced


class SiteCause(NamedTuple):
    """A site whose bytes differ from the usual ones."""

    text: str
    bytes: int
    usual_bytes: int  # the median of the devices
    hosts: int  # the number of hosts that have the site among their largest
    alone: bool = False  # this host's sites are the only ones that are known: other hosts saved no snapshot

    @property
    def difference(self) -> int:
        return self.bytes - self.usual_bytes


class UsualSites:
    """The bytes of each site on devices that are compared with each other."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._hosts: dict[str, set[str]] = {}
        hosts = len({device.host for device in devices})
        devices = [device for device in devices if device.summary.sites]
        self._alone = len({device.host for device in devices}) == 1 < hosts
        for device in devices:
            for site in device.summary.sites:
                self._hosts.setdefault(comparable(site.text), set()).add(device.host)
        step = max(len(devices) // SAMPLE, 1)
        others = [] if self._alone else [by_text(device.summary.sites) for device in devices[::step]]
        names = {name for sites in others for name in sites}
        self._usual = {name: int(np.median([sites.get(name, 0) for sites in others])) for name in names}

    def causes(self, device: Device, distance: int) -> Sequence[SiteCause]:
        """Return the sites that explain the most of a distance from the median, which is negative below the median."""
        own = by_text(device.summary.sites)
        sign = 1 if distance >= 0 else -1
        names = own if distance >= 0 else {**self._usual, **own}
        found = [
            SiteCause(name, own.get(name, 0), self._usual.get(name, 0), len(self._hosts.get(name, ())), self._alone)
            for name in names
        ]
        far = [cause for cause in found if cause.difference * sign > MIN_SHARE * abs(distance)]
        return sorted(far, key=lambda cause: -abs(cause.difference))[:MAX_CAUSES]


def by_text(sites: Sequence[Site]) -> dict[str, int]:
    """Return bytes by comparable text."""
    sums: dict[str, int] = {}
    for site in sites:
        text = comparable(site.text)
        sums[text] = sums.get(text, 0) + site.bytes
    return sums


def comparable(text: str) -> str:
    """Return a site's name without the number of its replica."""
    return REPLICA.sub("", text)


BEFORE = "allocated before the profile"
MAX_GROUPS = 4096  # groups that are named, in a Python loop


def largest_sites(recording: Recording) -> tuple[tuple[Site, ...], int]:
    """Return the largest sites at the peak, largest first, and the bytes of all others."""
    position = peak(recording).position
    rows = live_rows(recording, position)
    columns = recording.allocations
    early = (columns.start[rows] < 0) & (recording.axis is Axis.TIME)
    sums = {BEFORE: int(columns.charge[rows[early]].sum()), UNEXPLAINED: unexplained_bytes(recording, position)}
    named = rows[~early]
    group, groups = group_by_site(columns, named, sized=False)
    _, first = np.unique(group, return_index=True)
    size = np.bincount(group, columns.charge[named], groups).astype(np.int64)[: len(first)]
    largest = np.argsort(-size, kind="stable")
    for number in largest[:MAX_GROUPS].tolist():
        name = site_name(recording, int(named[first[number]]))
        sums[name] = sums.get(name, 0) + int(size[number])
    rest = int(size[largest[MAX_GROUPS:]].sum())
    found = sorted((Site(text, size) for text, size in sums.items() if size > 0), key=lambda site: -site.bytes)
    return tuple(found[:MAX_SITES]), rest + sum(site.bytes for site in found[MAX_SITES:])


def site_name(recording: Recording, row: int) -> str:
    """Return the user's line and function, `checkpoint.py:88 device_put`, or in a program, line and operation.

    Without a line, return the recording's own name.
    """
    rows, stacks = recording.allocations, recording.stacks
    name, leaf = rows.name[row], int(rows.stack[row])
    frame = int(source_frames(recording)[leaf]) if 0 <= leaf < len(stacks.parent) else -1
    if frame < 0 or not stacks.file[frame]:
        return base_name(name) if LINE.fullmatch(name) else name or rows.op[row] or rows.op_name[row] or "unnamed"
    line = f"{base_name(stacks.file[frame])}:{stacks.line[frame]}"
    return f"{line} {(recording.kind.has_program and rows.op[row]) or stacks.function[frame]}".rstrip()
