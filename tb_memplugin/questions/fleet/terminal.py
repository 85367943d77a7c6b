"""The text of `tb-memplugin fleet`, with its trend, and a bar of progress on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.fleet import Fleet, KnownCapture, TrendSeries
from tb_memplugin.model.kinds import TrendBy
from tb_memplugin.questions.asking.text_table import align, bar_text
from tb_memplugin.questions.fleet.trend import series_json
from tb_memplugin.questions.fleet.words import (
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
from tb_memplugin.sizes import bytes_text, counted, signed_bytes

MAX_LINES = 10  # lines of one kind, such as outliers
MAX_SERIES = 8  # series of a trend
INDENT = " " * 10


def lines(fleet: Fleet, rule: str, series_rule: str = "") -> Iterator[str]:
    """Yield the lines about a capture, with the rules by which sessions and the files of a series are joined."""
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
        rows = [
            [
                *(device.name, bytes_text(device.summary.peak_bytes)),
                *(signed_bytes(peaks.distance(device)), outlier_text(memory, device, hosts)),
            ]
            for device in others[:MAX_LINES]
        ]
        yield from align([["outlier", "peak", "from median", "because"], *rows], 0)
    if len(others) > MAX_LINES:
        yield f"and {len(others) - MAX_LINES:,} more"


def _several(label: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:MAX_LINES]:
        yield f"{label:10}{text}"
    if len(texts) > MAX_LINES:
        yield f"{INDENT}and {len(texts) - MAX_LINES:,} more"


def trend_lines(series: Sequence[TrendSeries], by: TrendBy = TrendBy.DAY) -> Iterator[str]:
    """Yield the lines about all series."""
    for number, each in enumerate(series[:MAX_SERIES]):
        yield from [""] if number else []
        yield from _of_series(each, by)
    if len(series) > MAX_SERIES:
        yield f"and {counted(len(series) - MAX_SERIES, 'smaller program')}: see --json"


def _of_series(series: TrendSeries, by: TrendBy) -> Iterator[str]:
    second = "reserved" if series.is_program else "worst device"
    count = counted(len(series.points), by.value)
    yield f"{series.name}, {'program' if series.is_program else 'median device'}, {count}"
    rows = [
        [
            *(one["day"] if by is TrendBy.DAY else one["capture"], bytes_text(one["peak_bytes"])),
            *(bytes_text(one["largest_bytes"]), signed_bytes(one["rise_bytes"]) if one["because"] else ""),
            one["because"] or "",
        ]
        for one in series_json(series)["points"]
    ]
    yield from align([[by.value, "peak", second, "change", "because"], *rows], 0)


WAIT_SECONDS = 0.5  # before the first bar; cached summaries have been read by then
EVERY_SECONDS = 0.2


@contextmanager
def fleet_progress(stream: TextIO, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows the number of files that are read, in a bar that disappears at the end."""
    if quiet or not stream.isatty():
        yield lambda count, total: None
        return
    begun = time.monotonic()
    shown = begun + WAIT_SECONDS - EVERY_SECONDS

    def write(text: str) -> None:
        stream.write(f"\r{text}\x1b[K")
        stream.flush()

    def done(count: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= EVERY_SECONDS:
            shown = now
            write(bar(count, total, now - begun))

    try:
        yield done
    finally:
        write("")


def bar(count: int, total: int, seconds: float) -> str:
    """Return the bar as a line of text."""
    return f"{bar_text(count, total)} {count:,} of {counted(total, 'file')}, {seconds:.0f} s"
