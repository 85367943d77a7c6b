"""The text of `tb-memplugin fleet`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.fleet import Device, Fleet, KnownCapture
from tb_memplugin.sizes import bytes_text, counted, signed_bytes
from tb_memplugin.views.shared.fleet_text import (
    apart_texts,
    cause_text,
    faults_text,
    heading_text,
    joined_text,
    leak_text,
    median_text,
    other_program_text,
    outlier_text,
    program_problem_text,
    series_text,
    worst_parts,
)
from tb_memplugin.views.shared.text_table import align

MAX_LINES = 10  # of one kind
INDENT = " " * 10


def lines(fleet: Fleet, rule: str, series_rule: str = "") -> Iterator[str]:
    """Yield the lines about a capture, with the rules by which sessions are joined, and files of a series."""
    answer = FleetAnswer(fleet)
    yield f"{fleet.name}: {heading_text(answer)}"
    if joined := joined_text(fleet, rule):
        yield f"joined    {joined}"
    if fleet.series:
        yield f"series    {series_rule}"
        yield from _several("", list(map(series_text, fleet.series)))
    for number, memory in enumerate(answer.memories):
        yield from [""] if number else []
        yield from _of_memory(memory, fleet, named=len(answer.memories) > 1)
    yield from _several("growth", [leak_text(leak, fleet) for leak in answer.leaks])
    yield from _several("program", [other_program_text(other) for other in answer.other_programs])
    yield from _several("program", [program_problem_text(p) for p in answer.programs if p.use.problem])
    yield from _several("problem", [f"{file.host or file.path}: {file.problem}" for file in answer.problems])


def left_out_lines(left_out: Sequence[KnownCapture]) -> Iterator[str]:
    """Yield a line for each capture that is not read and has known faults."""
    return _several("left out", [f"{each.fleet.name}: {text}" for each in left_out if (text := faults_text(each))])


def _of_memory(memory: MemoryAnswer, fleet: Fleet, named: bool) -> Iterator[str]:
    peaks, hosts = memory.peaks, len(fleet.hosts)
    if named:
        yield f"{peaks.memory}, {counted(len(peaks.devices), 'device')}"
    yield f"worst     {'   '.join(worst_parts(memory))}"
    for number, cause in enumerate(memory.causes(peaks.worst)):
        yield f"{INDENT}{'because: ' if not number else INDENT[:9]}{cause_text(cause, hosts)}"
    if median := median_text(memory):
        yield f"median    {median}"
    yield from _several("apart", apart_texts(peaks))
    others = [device for device in peaks.outliers if device is not peaks.worst]
    if others:
        yield from _outliers(others, memory, hosts)


def _outliers(outliers: Sequence[Device], memory: MemoryAnswer, hosts: int) -> Iterator[str]:
    table = [["outlier", "peak", "from median", "because"]]
    for device in outliers[:MAX_LINES]:
        distance = signed_bytes(memory.peaks.distance(device))
        peak, cause = bytes_text(device.summary.peak_bytes), outlier_text(memory, device, hosts)
        table.append([device.name, peak, distance, cause])
    yield from align(table, 0)
    if len(outliers) > MAX_LINES:
        yield f"and {len(outliers) - MAX_LINES:,} more"


def _several(label: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:MAX_LINES]:
        yield f"{label:10}{text}"
    if len(texts) > MAX_LINES:
        yield f"{INDENT}and {len(texts) - MAX_LINES:,} more"
