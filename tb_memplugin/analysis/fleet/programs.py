"""Programs over the hosts of a fleet, and the hosts that have other ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tb_memplugin.analysis.fleet.causes import by_text
from tb_memplugin.analysis.fleet.peaks import FLOOR_SHARE
from tb_memplugin.model.fleet import Fleet, ProgramUse

COMMON_SHARE = 0.5  # of the hosts, above which a program is the usual one
MAX_DIFFERENCES = 2
NO_PROGRAM: tuple[ProgramUse | None, str] = None, ""


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


def fleet_programs(fleet: Fleet) -> list[FleetProgram]:
    """Return the distinct programs, those on the most hosts first, then the largest."""
    uses: dict[str, tuple[ProgramUse, str]] = {}
    hosts: dict[str, dict[str, None]] = {}
    for file in fleet.files:
        for use in file.programs:
            uses.setdefault(use.fingerprint, (use, use.recording_id(file)))
            hosts.setdefault(use.fingerprint, {})[file.host] = None
    found = [FleetProgram(use, list(hosts[fingerprint]), first) for fingerprint, (use, first) in uses.items()]
    return sorted(found, key=lambda program: (-len(program.hosts), -program.use.peak_bytes, program.use.module))


def other_programs(fleet: Fleet, programs: Sequence[FleetProgram]) -> list[OtherProgram]:
    """Return the hosts that lack a program that most hosts with programs have, in order of hosts and modules.

    Hosts may have programs of their own beside: the first one of a job often computes more.
    """
    by_host: dict[str, dict[str, tuple[ProgramUse, str]]] = {}
    for file in fleet.files:
        for use in file.programs:
            by_host.setdefault(file.host, {})[use.fingerprint] = use, use.recording_id(file)
    common = {program.use.fingerprint: program for program in programs if is_usual(program, len(by_host))}
    found = []
    for host, uses in by_host.items():
        lacking = {common[fingerprint].use.module: common[fingerprint] for fingerprint in common.keys() - uses.keys()}
        for module, usual in sorted(lacking.items()):
            own = [each for each in uses.values() if each[0].module == module and each[0].fingerprint not in common]
            other, recording = max(own, key=lambda each: each[0].peak_bytes) if own else NO_PROGRAM
            found.append(OtherProgram(host, module, other, recording, usual))
    return found


def is_usual(program: FleetProgram, hosts: int) -> bool:
    """Return whether most of the hosts that have programs have this one. `hosts`: their number."""
    return hosts > 1 and len(program.hosts) > COMMON_SHARE * hosts
