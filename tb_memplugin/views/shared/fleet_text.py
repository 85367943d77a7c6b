"""Words about fleets, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.analysis.fleet.causes import SiteCause
from tb_memplugin.analysis.fleet.growth import FleetLeak
from tb_memplugin.analysis.fleet.peaks import Peaks
from tb_memplugin.analysis.fleet.programs import FleetProgram, OtherProgram
from tb_memplugin.model.fleet import Device, Fleet
from tb_memplugin.sizes import MINUS, bytes_text, counted

MAX_NAMES = 12
FEW = 0.5  # of the hosts, below which their number is the news


def heading_text(answer: FleetAnswer) -> str:
    """Return counts: hosts, devices, programs, and what is missing."""
    fleet = answer.fleet
    parts = [counted(len(fleet.hosts), "host"), counted(len(fleet.devices), "device"), programs_text(answer)]
    if fleet.missing:
        parts.append(f"{counted(len(fleet.missing), 'host')} missing: {missing_text(fleet.missing, fleet.hosts)}")
    if answer.problems:
        parts.append(f"{counted(len(answer.problems), 'file')} with problems")
    return ", ".join(part for part in parts if part)


def joined_text(fleet: Fleet, rule: str) -> str:
    """Return the number of joined sessions with the rule; empty for a single one."""
    return f"{counted(len(fleet.sessions), 'session')}: {rule}" if len(fleet.sessions) > 1 else ""


def worst_parts(memory: MemoryAnswer) -> list[str]:
    """Return the device with the largest peak: its name, its peak, and its distance from the median."""
    device, distance = memory.peaks.worst, memory.peaks.distance(memory.peaks.worst)
    found = device.summary
    capacity = f" of {bytes_text(found.capacity_bytes)}" if found.capacity_bytes else ""
    planned = "" if found.measured else " (plan of its largest program)"
    parts = [device.name, f"{bytes_text(found.peak_bytes)}{capacity}{planned}"]
    if len(memory.peaks.devices) == 1:
        return parts
    median = f"median {found.device if found.device in memory.peaks.apart else 'device'}"
    return [*parts, f"{bytes_text(distance)} above the {median}" if distance > 0 else f"equal to the {median}"]


def median_text(memory: MemoryAnswer) -> str:
    """Return the distribution of peaks in words; empty for a single device."""
    peaks = memory.peaks
    if len(peaks.devices) < 2:
        return ""
    far = len({device.host for device in peaks.outliers})
    outliers = f"outliers on {counted(far, 'host')}" if far else "no outliers"
    return f"{bytes_text(peaks.median)} · p95 {bytes_text(peaks.p95)} · spread {peaks.spread:.1%} · {outliers}"


def outlier_text(memory: MemoryAnswer, device: Device, hosts: int) -> str:
    """Return the first cause of an outlier in words."""
    return next((cause_text(cause, hosts) for cause in memory.causes(device)), "many small sites")


def cause_text(cause: SiteCause, hosts: int) -> str:
    """Return a cause in words. `hosts`: of the fleet."""
    text = f"{cause.text}, {'' if cause.difference > 0 else MINUS}{bytes_text(abs(cause.difference))}"
    if hosts > 1 and cause.hosts == 1 and cause.bytes:
        return f"{text}, on this host only"
    if cause.hosts < FEW * hosts and cause.bytes:
        return f"{text}, on {cause.hosts:,} of {hosts:,} hosts"
    return f"{text}: {bytes_text(cause.bytes)} here, {bytes_text(cause.usual_bytes)} on the median device"


def apart_texts(peaks: Peaks) -> list[str]:
    """Return the names of devices that are far from the median on most hosts, each in words."""
    return [
        f"{name} is {bytes_text(abs(size - peaks.median))} {'above' if size > peaks.median else 'below'} "
        f"the median device on most hosts, and is compared with {name} of the other hosts"
        for name, size in peaks.apart.items()
    ]


def leak_text(leak: FleetLeak, fleet: Fleet) -> str:
    """Return a leak in words."""
    hosts = len(fleet.hosts)
    first, every = leak.hosts[0], sum(1 for device in fleet.devices if device.host == leak.hosts[0])
    where = f"all {hosts:,} hosts" if len(leak.hosts) == hosts else f"{len(leak.hosts):,} of {hosts:,} hosts"
    if len(leak.hosts) == 1:
        number = len(leak.devices)
        on = f"all {number:,} devices" if number == every > 1 else ", ".join(d.summary.device for d in leak.devices)
        only = ", on this host only" if hosts > 1 else ""
        return f"{first}: {leak.site}, {bytes_text(leak.bytes)} per {leak.unit} on {on}{only}"
    return f"{leak.site}, up to {bytes_text(leak.bytes)} per {leak.unit} on {where}: {names(leak.hosts)}"


def programs_text(answer: FleetAnswer) -> str:
    """Return the number of distinct programs, and whether all hosts have the same; empty without programs."""
    having = {file.host for file in answer.fleet.files if file.programs}
    if not having:
        return ""
    everywhere = sum(1 for program in answer.programs if len(program.hosts) == len(having))
    total = len(answer.programs)
    if len(having) == 1:
        return counted(total, "program")
    if everywhere == total:
        return f"{counted(total, 'program')} (identical on all)"
    identical = f"{everywhere:,}" if everywhere else "none"
    return f"{counted(total, 'program')} ({identical} identical on all)"


def other_program_text(other: OtherProgram) -> str:
    """Return a host with another program in words."""
    if other.use is None:
        return f"{other.host} has no {other.module}, which most hosts have"
    size = f", {bytes_text(other.use.reserved_bytes)} reserved" if other.use.reserved_bytes >= 0 else ""
    return f"{other.host} has another {other.module} than most hosts{size}"


def program_problem_text(program: FleetProgram) -> str:
    """Return why a program cannot be read, in words."""
    return f"{program.use.module} on {counted(len(program.hosts), 'host')}: {program.use.problem}"


def missing_text(missing: Sequence[str], hosts: Sequence[str]) -> str:
    """Return missing hosts by the number in which their names differ from those of the others."""
    every = [*missing, *hosts]
    start = every[0][: _common(every)].rstrip("0123456789")
    end = len(every[0][::-1][: _common([name[::-1] for name in every])].rstrip("0123456789"))
    return names([name[len(start) : len(name) - end] for name in missing])


def _common(texts: Sequence[str]) -> int:
    """Return the number of letters with which all texts begin."""
    return next((at for at, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), 0)


def names(hosts: Sequence[str]) -> str:
    """Return a list of names, of which the first ones are named."""
    more = f" and {len(hosts) - MAX_NAMES:,} more" if len(hosts) > MAX_NAMES else ""
    return f"{', '.join(hosts[:MAX_NAMES])}{more}"
