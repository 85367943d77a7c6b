"""Leaks over the devices of a fleet, by the site that leaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tb_memplugin.analysis.fleet.causes import comparable
from tb_memplugin.model.fleet import Device, Fleet


class FleetLeak(NamedTuple):
    """A site that leaks, and the devices on which it does."""

    site: str
    bytes: int  # in each step, on the device where it is the most
    unit: str
    hosts: Sequence[str]
    devices: Sequence[Device]
    fastest: Device


def fleet_leaks(fleet: Fleet) -> list[FleetLeak]:
    """Return the sites that leak: those on the fewest hosts first, then the fastest."""
    groups: dict[str, list[Device]] = {}
    for device in fleet.devices:
        if device.summary.growth:
            groups.setdefault(comparable(device.summary.growth), []).append(device)
    found = [_leak(site, devices) for site, devices in groups.items()]
    return sorted(found, key=lambda leak: (len(leak.hosts), -leak.bytes))


def _leak(site: str, devices: Sequence[Device]) -> FleetLeak:
    fastest = max(devices, key=lambda device: device.summary.growth_bytes)
    hosts = list(dict.fromkeys(device.host for device in devices))
    return FleetLeak(site, fastest.summary.growth_bytes, fastest.summary.growth_unit, hosts, devices, fastest)
