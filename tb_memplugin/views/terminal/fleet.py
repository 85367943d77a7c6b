"""The text of `tb-memplugin fleet`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.fleet import Device, Fleet
from tb_memplugin.sizes import bytes_text, counted, signed_bytes
from tb_memplugin.views.shared.fleet_text import (
    apart_texts,
    cause_text,
    leak_text,
    missing_text,
    other_program_text,
    program_problem_text,
    programs_text,
)
from tb_memplugin.views.terminal.text_table import align

MAX_LINES = 10  # of one kind
INDENT = " " * 10


def lines(fleet: Fleet, rule: str) -> Iterator[str]:
    """Yield the lines about a capture."""
    answer = FleetAnswer(fleet)
    yield f"{fleet.name}: {heading(answer)}"
    if len(fleet.sessions) > 1:
        yield f"joined    {counted(len(fleet.sessions), 'session')}: {rule}"
    for number, memory in enumerate(answer.memories):
        yield from [""] if number else []
        yield from _of_memory(memory, fleet, named=len(answer.memories) > 1)
    yield from _several("growth", [leak_text(leak, fleet) for leak in answer.leaks])
    yield from _several("program", [other_program_text(other) for other in answer.other_programs])
    yield from _several("program", [program_problem_text(p) for p in answer.programs if p.use.problem])
    yield from _several("problem", [f"{file.host or file.path}: {file.problem}" for file in answer.problems])


def heading(answer: FleetAnswer) -> str:
    """Return counts: hosts, devices, programs, and what is missing."""
    fleet = answer.fleet
    parts = [counted(len(fleet.hosts), "host"), counted(len(fleet.devices), "device"), programs_text(answer)]
    if fleet.missing:
        parts.append(f"{counted(len(fleet.missing), 'host')} missing: {missing_text(fleet.missing, fleet.hosts)}")
    if answer.problems:
        parts.append(f"{counted(len(answer.problems), 'file')} with problems")
    return ", ".join(part for part in parts if part)


def _of_memory(memory: MemoryAnswer, fleet: Fleet, named: bool) -> Iterator[str]:
    peaks, hosts = memory.peaks, len(fleet.hosts)
    if named:
        yield f"{peaks.memory}, {counted(len(peaks.devices), 'device')}"
    yield f"worst     {_place(peaks.worst)}{_distance(memory, peaks.worst)}"
    for number, cause in enumerate(memory.causes(peaks.worst)):
        yield f"{INDENT}{'because: ' if not number else INDENT[:9]}{cause_text(cause, hosts)}"
    if len(peaks.devices) > 1:
        far = len({device.host for device in peaks.outliers})
        outliers = f"outliers on {counted(far, 'host')}" if far else "no outliers"
        yield (
            f"median    {bytes_text(peaks.median)} · p95 {bytes_text(peaks.p95)} · spread {peaks.spread:.1%} · "
            f"{outliers}"
        )
    yield from _several("apart", apart_texts(peaks))
    others = [device for device in peaks.outliers if device is not peaks.worst]
    if others:
        yield from _outliers(others, memory, hosts)


def _place(device: Device) -> str:
    found = device.summary
    capacity = f" of {bytes_text(found.capacity_bytes)}" if found.capacity_bytes else ""
    planned = "" if found.measured else " (plan of its largest program)"
    return f"{device.name}   {bytes_text(found.peak_bytes)}{capacity}{planned}"


def _distance(memory: MemoryAnswer, device: Device) -> str:
    distance = memory.peaks.distance(device)
    if len(memory.peaks.devices) == 1:
        return ""
    median = f"median {device.summary.device if device.summary.device in memory.peaks.apart else 'device'}"
    return f"   {bytes_text(distance)} above the {median}" if distance > 0 else f"   equal to the {median}"


def _outliers(outliers: Sequence[Device], memory: MemoryAnswer, hosts: int) -> Iterator[str]:
    table = [["outlier", "peak", "from median", "because"]]
    for device in outliers[:MAX_LINES]:
        cause = next((cause_text(cause, hosts) for cause in memory.causes(device)), "many small sites")
        distance = signed_bytes(memory.peaks.distance(device))
        table.append([device.name, bytes_text(device.summary.peak_bytes), distance, cause])
    yield from align(table, 0)
    if len(outliers) > MAX_LINES:
        yield f"and {len(outliers) - MAX_LINES:,} more"


def _several(label: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:MAX_LINES]:
        yield f"{label:10}{text}"
    if len(texts) > MAX_LINES:
        yield f"{INDENT}and {len(texts) - MAX_LINES:,} more"
