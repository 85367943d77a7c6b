"""Words about fleets, for the terminal and the page."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tb_memplugin.analysis.fleet.answer import (
    FleetAnswer,
    FleetLeak,
    FleetProgram,
    MemoryAnswer,
    OtherProgram,
    is_usual,
)
from tb_memplugin.analysis.fleet.host_names import host_ranges
from tb_memplugin.analysis.fleet.peaks import Peaks, SiteCause
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED
from tb_memplugin.model.fleet import Device, FileSeries, Fleet, KnownCapture, Rise, TrendChange
from tb_memplugin.numbered_names import natural_key
from tb_memplugin.questions.compare.causes import cause_text as change_cause_text
from tb_memplugin.sizes import MINUS, bytes_text, counted, percent_text, signed_bytes

MAX_NAMES = 12
FEW = 0.5  # a cause on less than this share of the hosts is described by their number, a choice


def heading_text(answer: FleetAnswer) -> str:
    """Return the numbers of hosts, devices, programs, missing hosts and files with problems."""
    fleet = answer.fleet
    counts = [counted(len(fleet.hosts), "host"), counted(len(fleet.devices), "device"), programs_text(answer)]
    parts = counts if fleet.hosts else ["No host is read"]
    if fleet.missing:
        parts.append(f"{counted(len(fleet.missing), 'host')} missing: {hosts_text(fleet.missing, fleet.hosts)}")
    if answer.problems:
        parts.append(f"{counted(len(answer.problems), 'file')} with problems")
    return ", ".join(part for part in parts if part)


def joined_text(fleet: Fleet, rule: str) -> str:
    """Return the number of joined sessions with the rule; empty for a single one."""
    return f"{counted(len(fleet.sessions), 'session')}: {rule}" if len(fleet.sessions) > 1 else ""


def worst_parts(memory: MemoryAnswer) -> list[str]:
    """Return the device with the largest peak: its name, its peak, and its distance from the median.

    Of several devices with one peak, none is the worst.
    """
    device, distance = memory.peaks.worst, memory.peaks.distance(memory.peaks.worst)
    found = device.summary
    capacity = f" of {bytes_text(found.capacity_bytes)}" if found.capacity_bytes else ""
    planned = "" if found.measured else " (plan of its largest program)"
    size, devices = f"{bytes_text(found.peak_bytes)}{capacity}{planned}", len(memory.peaks.devices)
    if devices == 1:
        return [device.name, size]
    if memory.peaks.smallest_bytes == memory.peaks.largest_bytes:
        return [f"{all_of(devices, 'devices')} are equal", size]
    median = f"median {found.device if found.device in memory.peaks.apart else 'device'}"
    above = f"{bytes_text(distance)} above the {median}" if distance > 0 else f"equal to the {median}"
    return [device.name, size, above]


def median_text(memory: MemoryAnswer) -> str:
    """Return the distribution of peaks in words; empty for a single device."""
    peaks = memory.peaks
    if len(peaks.devices) < 2:
        return ""
    far = len({device.host for device in peaks.outliers})
    outliers = f"outliers on {counted(far, 'host')}" if far else "no outliers"
    spread = f"spread {percent_text(peaks.spread, digits=1)}"
    return f"{bytes_text(peaks.median_bytes)} · p95 {bytes_text(peaks.p95_bytes)} · {spread} · {outliers}"


def outlier_text(memory: MemoryAnswer, device: Device, hosts: int) -> str:
    """Return the first cause of an outlier in words."""
    return next((cause_text(cause, hosts) for cause in memory.causes(device)), "many small sites")


def cause_text(cause: SiteCause, hosts: int) -> str:
    """Return a cause in words. `hosts` is the number of hosts of the fleet."""
    text = f"{cause.text}, {'' if cause.difference > 0 else MINUS}{bytes_text(abs(cause.difference))}"
    if hosts > 1 and cause.alone:
        return f"{cause.text}, {bytes_text(cause.bytes)} in its snapshot; other hosts saved none"
    if hosts > 1 and cause.hosts == 1 and cause.bytes:
        return f"{text}, on this host only"
    if cause.hosts < FEW * hosts and cause.bytes:
        return f"{text}, on {cause.hosts:,} of {hosts:,} hosts"
    return f"{text}: {bytes_text(cause.bytes)} here, {bytes_text(cause.usual_bytes)} on the median device"


def apart_texts(peaks: Peaks) -> list[str]:
    """Return the names of devices that are far from the median on most hosts, each in words."""
    return [
        f"{name} is {bytes_text(abs(size - peaks.median_bytes))} {'above' if size > peaks.median_bytes else 'below'} "
        f"the median device on most hosts, and is compared with {name} of the other hosts"
        for name, size in peaks.apart.items()
    ]


def leak_text(leak: FleetLeak, fleet: Fleet) -> str:
    """Return a leak in words."""
    hosts = len(fleet.hosts)
    first, every = leak.hosts[0], sum(1 for device in fleet.devices if device.host == leak.hosts[0])
    where = all_of(hosts, "hosts") if len(leak.hosts) == hosts else f"{len(leak.hosts):,} of {hosts:,} hosts"
    if len(leak.hosts) == 1:
        number = len(leak.devices)
        on = all_of(number, "devices") if number == every > 1 else ", ".join(d.summary.device for d in leak.devices)
        only = ", on this host only" if hosts > 1 else ""
        return f"{first}: {leak.site}, {bytes_text(leak.bytes)} per {leak.unit} on {on}{only}"
    return f"{leak.site}, up to {bytes_text(leak.bytes)} per {leak.unit} on {where}: {names(leak.hosts)}"


def all_of(count: int, things: str) -> str:
    """Return `both hosts`, or `all 3 hosts`."""
    return f"both {things}" if count == 2 else f"all {count:,} {things}"


def series_text(series: FileSeries) -> str:
    """Describe how files whose names differ in numbers only are read: as one process, or each as a host."""
    files = f"{series.host}: {counted(series.files, 'file')}"
    if series.evidence:
        return f"{files} of one process ({series.evidence}): its peak is the largest one"
    return (
        f"{files} with the same devices, each read as a host, as nothing shows that one process saved them; "
        "fleet --numbered-files series reads them as one process"
    )


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
    if others := {other.host for other in answer.other_programs}:
        usual = sum(1 for program in answer.programs if is_usual(program, len(having)))
        return f"{counted(usual, 'program')} (another on {counted(len(others), 'host')})"
    identical = f"{everywhere:,}" if everywhere else "none"
    return f"{counted(total, 'program')} ({identical} identical on all)"


def other_program_text(other: OtherProgram) -> str:
    """Return a host with another program in words."""
    if other.use is None:
        return f"{other.host} has no {other.module}, which most hosts have"
    return f"{other.host} has another {other.module} than most hosts: {program_difference_text(other)}"


def program_difference_text(other: OtherProgram) -> str:
    """Describe the differences between a host's program and the usual one."""
    if other.use is None:
        return "the host has no program of this name"
    own, usual = other.use.reserved_bytes, other.usual.use.reserved_bytes
    if own < 0 or usual < 0:
        return other.use.problem or other.usual.use.problem or "what it reserves is unknown"
    reserved = f"{bytes_text(own)} reserved, {signed_bytes(own - usual) if own != usual else 'the same size'}"
    return "; ".join([reserved, *(f"{site}, {signed_bytes(size)}" for site, size in other.differences)])


def program_problem_text(program: FleetProgram) -> str:
    """Describe the reason why a program cannot be read."""
    return f"{program.use.module} on {counted(len(program.hosts), 'host')}: {program.use.problem}"


def hosts_text(some: Sequence[str], hosts: Sequence[str]) -> str:
    """Return some hosts by the numbers that distinguish the names of all `hosts`, `4, 6, 16\u201319`."""
    every = [*some, *hosts]
    start = every[0][: _common(every)].rstrip("0123456789")
    end = len(every[0][::-1][: _common([name[::-1] for name in every])].rstrip("0123456789"))
    cut = slice(len(start), -end or None)
    return names([f"{a[cut]}\u2013{b[cut]}" if count > 1 else a[cut] for a, b, count in host_ranges(some)])


def faults_text(known: KnownCapture) -> str:
    """Return the known faults of a capture that is not read; empty without any.

    Outliers are far from the median of all devices, so they are known only after all files have been read.
    """
    answer, missing = FleetAnswer(known.fleet), known.fleet.missing
    damaged = [file.host or os.path.basename(file.path) for file in answer.problems]  # dumped programs have no host
    lists: list[tuple[str, Sequence[str]]] = [
        (f"{counted(len(missing), 'host')} missing:", missing),
        (f"{counted(len(damaged), 'file')} with problems:", damaged),
        _on_hosts("leaks", [host for leak in answer.leaks for host in leak.hosts]),
    ]
    if known.is_complete:
        far = [device.host for memory in answer.memories for device in memory.peaks.outliers]
        lists.append(_on_hosts("outliers", far))
        lists.append(_on_hosts("another program", [other.host for other in answer.other_programs]))
    every = [*known.hosts, *missing]
    return "; ".join(f"{label} {hosts_text(ordered(hosts), every)}" for label, hosts in lists if hosts)


def _on_hosts(what: str, hosts: Sequence[str]) -> tuple[str, Sequence[str]]:
    return f"{what} on {counted(len(set(hosts)), 'host')}:", hosts


def ordered(hosts: Sequence[str]) -> list[str]:
    """Return each name once, in natural order."""
    return sorted(set(hosts), key=natural_key)


def _common(texts: Sequence[str]) -> int:
    """Return the number of letters with which all texts begin."""
    return next((at for at, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), 0)


def rise_text(rise: Rise) -> str:
    """Describe the changes that raised a peak."""
    texts = [*map(change_cause_text, rise.causes), *map(_change_text, rise.changes)]
    return "; ".join(texts) or rise.problem or "many small changes"


def _change_text(change: TrendChange) -> str:
    if change.text == UNEXPLAINED:
        return f"{signed_bytes(change.bytes_after - change.bytes_before)} {UNEXPLAINED}"
    if not change.bytes_before:
        return f"{change.text}, {bytes_text(change.bytes_after)}, new"
    return f"{change.text}, from {bytes_text(change.bytes_before)} to {bytes_text(change.bytes_after)}"


def names(hosts: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    more = f" and {len(hosts) - MAX_NAMES:,} more" if len(hosts) > MAX_NAMES else ""
    return f"{', '.join(hosts[:MAX_NAMES])}{more}"
