"""The answer about a fleet: distributions, outliers with their causes, leaks, hosts with other programs, gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tb_memplugin.analysis.fleet.peaks import (
    FLOOR_SHARE,
    MIN_DEVICES,
    Peaks,
    SiteCause,
    UsualSites,
    by_text,
    comparable,
    peaks_by_memory,
)
from tb_memplugin.model.fleet import Device, FileSummary, Fleet, ProgramUse
from tb_memplugin.model.lazy import cached_property

COMMON_SHARE = 0.5  # a program of more than this share of the hosts, the majority, is the usual one
MAX_DIFFERENCES = 2


class FleetProgram(NamedTuple):
    """A program, and the hosts that have it."""

    use: ProgramUse
    hosts: Sequence[str]
    recording: str  # its id on the first of the hosts


class OtherProgram(NamedTuple):
    """A host whose program of a module differs from the usual one."""

    host: str
    module: str
    use: ProgramUse | None  # None: the host has no program of the module
    recording: str  # its id; empty without a program
    usual: FleetProgram

    @property
    def differences(self) -> Sequence[tuple[str, int]]:
        """Return the sites that differ the most from the usual program, with the bytes that they have more."""
        own, usual = by_text(self.use.sites if self.use else ()), by_text(self.usual.use.sites)
        by_site = {site: own.get(site, 0) - usual.get(site, 0) for site in {**own, **usual}}
        far = [(site, size) for site, size in by_site.items() if abs(size) > FLOOR_SHARE * self.usual.use.peak_bytes]
        return sorted(far, key=lambda found: (-abs(found[1]), found[0]))[:MAX_DIFFERENCES] if self.use else []


def is_usual(program: FleetProgram, hosts: int) -> bool:
    """Return whether most of the hosts that have programs have this one. `hosts`: their number."""
    return hosts > 1 and len(program.hosts) > COMMON_SHARE * hosts


class FleetLeak(NamedTuple):
    """A site that leaks, and the devices on which it does."""

    site: str
    bytes: int  # that it adds in each step, on the device where it adds the most
    unit: str
    hosts: Sequence[str]
    devices: Sequence[Device]
    fastest: Device


@dataclass(frozen=True)
class FleetAnswer:
    """The findings about a fleet, computed on access."""

    fleet: Fleet

    @cached_property
    def memories(self) -> list[MemoryAnswer]:
        """Return an answer for each memory, the devices' main memory first."""
        return [MemoryAnswer(peaks) for peaks in peaks_by_memory(self.fleet)]

    @cached_property
    def leaks(self) -> list[FleetLeak]:
        """Return the sites that leak: those on the fewest hosts first, then the fastest."""
        groups: dict[str, list[Device]] = {}
        for device in self.fleet.devices:
            if device.summary.growth:
                groups.setdefault(comparable(device.summary.growth), []).append(device)
        found = []
        for site, devices in groups.items():
            fastest = max(devices, key=lambda device: device.summary.growth_bytes)
            hosts = list(dict.fromkeys(device.host for device in devices))
            grown, unit = fastest.summary.growth_bytes, fastest.summary.growth_unit
            found.append(FleetLeak(site, grown, unit, hosts, devices, fastest))
        return sorted(found, key=lambda leak: (len(leak.hosts), -leak.bytes))

    @cached_property
    def programs(self) -> list[FleetProgram]:
        """Return the distinct programs, those on the most hosts first, then the largest."""
        uses: dict[str, tuple[ProgramUse, str]] = {}
        hosts: dict[str, dict[str, None]] = {}
        for file in self.fleet.files:
            for use in file.programs:
                uses.setdefault(use.fingerprint, (use, use.recording_id(file)))
                hosts.setdefault(use.fingerprint, {})[file.host] = None
        found = [FleetProgram(use, list(hosts[fingerprint]), first) for fingerprint, (use, first) in uses.items()]
        return sorted(found, key=lambda program: (-len(program.hosts), -program.use.peak_bytes, program.use.module))

    @cached_property
    def other_programs(self) -> list[OtherProgram]:
        """Return the hosts that lack a program that most hosts with programs have, in order of hosts and modules.

        Hosts may have further programs of their own: the first host of a job often computes more.
        """
        by_host: dict[str, dict[str, tuple[ProgramUse, str]]] = {}
        for file in self.fleet.files:
            for use in file.programs:
                by_host.setdefault(file.host, {})[use.fingerprint] = use, use.recording_id(file)
        common = {program.use.fingerprint: program for program in self.programs if is_usual(program, len(by_host))}
        found = []
        for host, uses in by_host.items():
            lacking = {common[missing].use.module: common[missing] for missing in common.keys() - uses.keys()}
            for module, usual in sorted(lacking.items()):
                own = [each for each in uses.values() if each[0].module == module and each[0].fingerprint not in common]
                other, recording = max(own, key=lambda each: each[0].peak_bytes, default=(None, ""))
                found.append(OtherProgram(host, module, other, recording, usual))
        return found

    @property
    def problems(self) -> Sequence[FileSummary]:
        """Return the files that cannot be read, or not completely."""
        return [file for file in self.fleet.files if file.problem]


@dataclass(frozen=True)
class MemoryAnswer:
    """The devices of one memory."""

    peaks: Peaks

    @cached_property
    def _usual(self) -> dict[str, UsualSites]:
        """Return the usual sites by device name, for names that are apart, and under "" those of all other devices."""
        groups: dict[str, list[Device]] = {}
        for device in self.peaks.devices:
            groups.setdefault(self._group(device), []).append(device)
        return {name: UsualSites(devices) for name, devices in groups.items()}

    def _group(self, device: Device) -> str:
        return device.summary.device if device.summary.device in self.peaks.apart else ""

    def causes(self, device: Device) -> Sequence[SiteCause]:
        """Return the causes of a device's distance from the median device; none if it is near."""
        distance = self.peaks.distance(device)
        # If there are only two devices, neither is an outlier, but the larger one is explained.
        limit = FLOOR_SHARE * self.peaks.median_bytes if len(self.peaks.devices) < MIN_DEVICES else self.peaks.limit
        if abs(distance) <= limit:
            return []
        return self._usual[self._group(device)].causes(device, distance)
