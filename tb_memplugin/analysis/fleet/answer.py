"""The answer about a fleet: distributions, outliers with their causes, leaks, and hosts with other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_memplugin.analysis.fleet.causes import SiteCause, UsualSites
from tb_memplugin.analysis.fleet.growth import FleetLeak, fleet_leaks
from tb_memplugin.analysis.fleet.peaks import FLOOR_SHARE, MIN_DEVICES, Peaks, peaks_by_memory
from tb_memplugin.analysis.fleet.programs import FleetProgram, OtherProgram, fleet_programs, other_programs
from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.model.fleet import Device, FileSummary, Fleet


@dataclass(frozen=True)
class FleetAnswer:
    """The findings about a fleet, computed on access."""

    fleet: Fleet

    @cached_property
    def memories(self) -> list[MemoryAnswer]:
        """Return an answer for each memory, that of the devices first."""
        return [MemoryAnswer(peaks) for peaks in peaks_by_memory(self.fleet)]

    @cached_property
    def leaks(self) -> list[FleetLeak]:
        return fleet_leaks(self.fleet)

    @cached_property
    def programs(self) -> list[FleetProgram]:
        return fleet_programs(self.fleet)

    @cached_property
    def other_programs(self) -> list[OtherProgram]:
        return other_programs(self.fleet, self.programs)

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
        """Return the usual sites of each name of devices that is apart, and of all others below the empty name."""
        groups: dict[str, list[Device]] = {}
        for device in self.peaks.devices:
            groups.setdefault(self._group(device), []).append(device)
        return {name: UsualSites(devices) for name, devices in groups.items()}

    def _group(self, device: Device) -> str:
        return device.summary.device if device.summary.device in self.peaks.apart else ""

    def causes(self, device: Device) -> Sequence[SiteCause]:
        """Return why a device is far from the median device; none where it is near."""
        distance = self.peaks.distance(device)
        # Of two devices, the larger one is explained although neither is an outlier.
        limit = FLOOR_SHARE * self.peaks.median if len(self.peaks.devices) < MIN_DEVICES else self.peaks.limit
        if abs(distance) <= limit:
            return []
        return self._usual[self._group(device)].causes(device, distance)
