"""Causes of an outlier: the sites whose bytes differ most from those of the other devices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.fleet import Device, Site

# TensorFlow's operations have the number of the replica in their names.
REPLICA = re.compile(r"\breplica_\d+/")
MAX_CAUSES = 3
MIN_SHARE = 0.1  # of the device's distance from the median
SAMPLE = 512  # devices, evenly spaced, from which usual bytes are taken


class SiteCause(NamedTuple):
    """A site whose bytes differ from the usual ones."""

    text: str
    bytes: int
    usual_bytes: int  # the median of the devices
    hosts: int  # that have the site among their largest
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
        """Return the sites that explain most of a distance from the median, which is negative below it."""
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
    """Return the name that a site has on every replica."""
    return REPLICA.sub("", text)
