"""Programs over the hosts of a fleet, and the hosts that have other ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tb_memplugin.model.fleet import Fleet, ProgramUse

COMMON_SHARE = 0.5  # of the hosts, above which a program is the usual one


class FleetProgram(NamedTuple):
    """A program, and the hosts that have it."""

    use: ProgramUse
    hosts: Sequence[str]


class OtherProgram(NamedTuple):
    """A host whose program of a module differs from the usual one."""

    host: str
    module: str
    use: ProgramUse | None  # None: the host has no program of the module


def fleet_programs(fleet: Fleet) -> list[FleetProgram]:
    """Return the distinct programs, those on the most hosts first, then the largest."""
    uses: dict[str, ProgramUse] = {}
    hosts: dict[str, dict[str, None]] = {}
    for file in fleet.files:
        for use in file.programs:
            uses.setdefault(use.fingerprint, use)
            hosts.setdefault(use.fingerprint, {})[file.host] = None
    found = [FleetProgram(use, list(hosts[fingerprint])) for fingerprint, use in uses.items()]
    return sorted(found, key=lambda program: (-len(program.hosts), -program.use.peak_bytes, program.use.module))


def other_programs(fleet: Fleet, programs: Sequence[FleetProgram]) -> list[OtherProgram]:
    """Return the hosts that lack a program that most hosts with programs have, in order of hosts and modules.

    Hosts may have programs of their own beside: the first one of a job often computes more.
    """
    by_host: dict[str, list[ProgramUse]] = {}
    for file in fleet.files:
        if file.programs:
            by_host.setdefault(file.host, []).extend(file.programs)
    common = {program.use.fingerprint: program.use for program in programs if _is_common(program, len(by_host))}
    found = []
    for host, uses in by_host.items():
        lacking = common.keys() - {use.fingerprint for use in uses}
        for module in sorted({common[fingerprint].module for fingerprint in lacking}):
            own = [use for use in uses if use.module == module and use.fingerprint not in common]
            found.append(OtherProgram(host, module, max(own, key=lambda use: use.peak_bytes, default=None)))
    return found


def _is_common(program: FleetProgram, hosts: int) -> bool:
    return hosts > 1 and len(program.hosts) > COMMON_SHARE * hosts
