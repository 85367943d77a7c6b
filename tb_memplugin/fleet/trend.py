"""The trend of a job over days or captures: its peaks, and the lines that raised them, by comparison of neighbors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from tb_memplugin.analysis.compare.causes import explain_change
from tb_memplugin.analysis.compare.comparison import CompareBy, compare
from tb_memplugin.analysis.compare.facts import facts
from tb_memplugin.analysis.fleet.peaks import FLOOR_BYTES, FLOOR_SHARE, peaks_by_memory
from tb_memplugin.errors import InputError
from tb_memplugin.executors import TaskExecutor
from tb_memplugin.fleet.scan import Done, Scan
from tb_memplugin.fleet.sessions import Capture
from tb_memplugin.fleet.summarize import parts_of, use_of
from tb_memplugin.fleet.tasks import problem_text
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.changes import ChangeCause
from tb_memplugin.model.fleet import FileSummary, Fleet, ProgramUse, Rise, TrendChange, TrendPoint, TrendSeries
from tb_memplugin.model.kinds import TrendBy
from tb_memplugin.model.recording import Recording
from tb_memplugin.numbered_names import split_name

MAX_CHANGES = 5
MIN_SHARE = 0.05  # a choice: lines and causes below this share of the growth are left out


class ChangesBetween(NamedTuple):
    """Causes of a higher peak, the largest growth first: source lines, and for programs the changes of the code."""

    lines: tuple[TrendChange, ...]
    causes: tuple[ChangeCause, ...] = ()


def changes_between(before: tuple[HostFile, str], after: tuple[HostFile, str], is_program: bool) -> ChangesBetween:
    """Compare a device (by memory) or a program (by fingerprint) between two files."""
    a, b = _recording(*before, is_program), _recording(*after, is_program)
    found = compare(a, b, by=CompareBy.SOURCE)
    growth = found.total_b - found.total_a
    changes = [TrendChange(step.label, step.bytes_a, step.bytes_b) for step in found.steps]
    lines = [change for change in changes if change.bytes_after - change.bytes_before > MIN_SHARE * growth]
    causes = explain_change(facts(a), facts(b)).causes if is_program else ()
    raising = tuple(cause for cause in causes if cause.bytes > MIN_SHARE * growth)
    return ChangesBetween(tuple(lines[:MAX_CHANGES]), raising[:MAX_CHANGES])


def _recording(file: HostFile, key: str, is_program: bool) -> Recording:
    for part in parts_of(file):
        if part.kind.has_program == is_program and (not is_program or use_of(part).fingerprint == key):
            for recording in part.read():
                if recording.is_main_memory if is_program else recording.memory == key:
                    return recording
    raise InputError("The file has changed", file.path, "run the command again")


MAX_COMPARED = 50  # only the largest rises of a series are explained, as explaining one reads two files


def trend(
    captures: Sequence[Capture], scan: Scan, done: Done = lambda count, total: None, by: TrendBy = TrendBy.DAY
) -> list[TrendSeries]:
    """Return the series of memories, then of programs, the largest first. The largest peak of a day counts for it."""
    ordered = sorted(captures, key=lambda capture: capture.began)
    fleets = scan.fleets(ordered, done)
    points: dict[_SeriesKey, list[TrendPoint]] = {}
    programs = _ProgramsOverTime()
    for capture, fleet in zip(ordered, fleets, strict=True):
        day = datetime.fromtimestamp(capture.began, UTC).strftime("%Y-%m-%d")
        uses = programs.uses(fleet)
        # What captures of one job have in common: the largest program, else the name without its numbers.
        job = next((f"{used.module} {used.number}" for used in uses), "".join(split_name(fleet.name).texts))
        for series, point in [*_memories(day, fleet, job), *_programs(day, fleet, uses)]:
            points.setdefault(series, []).append(point)
    shown = _by_day if by is TrendBy.DAY else tuple
    found = _named({series: shown(of) for series, of in points.items()})
    found.sort(key=lambda series: (series.is_program, -max(point.peak_bytes for point in series.points)))
    files = {file.path: file for capture in captures for file, _ in capture.files}
    return [replace(series, rises=_rises(series, files, scan.executor)) for series in found]


SITE_FILE = re.compile(r"([^/\s]+\.py):\d+")


class _ProgramOverTime(NamedTuple):
    """A program over all captures. `number` distinguishes programs of one module's name."""

    module: str
    number: int


_Uses = Mapping[_ProgramOverTime, Sequence[tuple[FileSummary, ProgramUse]]]  # the largest first


class _ProgramsOverTime:
    """The programs of captures: one with a source file of an earlier one of its name is that one, changed.

    Unrelated experiments call their functions `train_step`, too.
    """

    def __init__(self) -> None:
        self._files: dict[str, list[set[str]]] = {}

    def uses(self, fleet: Fleet) -> _Uses:
        """Return the uses of each program in a capture, the largest program and use first."""
        found: dict[_ProgramOverTime, list[tuple[FileSummary, ProgramUse]]] = {}
        all_uses = [(file, use) for file in fleet.files for use in file.programs if use.peak_bytes >= 0]
        for file, use in sorted(all_uses, key=lambda found: -found[1].peak_bytes):
            found.setdefault(self._program(use), []).append((file, use))
        return found

    def _program(self, use: ProgramUse) -> _ProgramOverTime:
        of_module = self._files.setdefault(use.module, [])
        files = {found[1] for site in use.sites if (found := SITE_FILE.match(site.text))}
        for number, known in enumerate(of_module):
            if known & files or not (known and files):  # without known lines, the name decides
                known |= files
                return _ProgramOverTime(use.module, number)
        of_module.append(files)
        return _ProgramOverTime(use.module, len(of_module) - 1)


class _SeriesKey(NamedTuple):
    is_program: bool
    name: str
    job: str  # tells apart series of one name


def _memories(day: str, fleet: Fleet, job: str) -> Iterable[tuple[_SeriesKey, TrendPoint]]:
    kinds = {file.path: file.kind for file in fleet.files}
    for peaks in peaks_by_memory(fleet):
        if not peaks.typical.summary.measured:
            continue  # the peaks of programs are series of their own
        path, device, recording = peaks.typical.path, peaks.typical.summary.device, peaks.typical.recording_id
        sizes = (peaks.median_bytes, peaks.largest_bytes)
        found = TrendPoint(day, fleet.name, *sizes, len(peaks.devices), path, device, recording)
        # An allocator's events, a snapshot and the counters of a running job measure different things.
        yield _SeriesKey(False, peaks.memory, f"{kinds[path]} {job}"), found


def _programs(day: str, fleet: Fleet, uses: _Uses) -> Iterable[tuple[_SeriesKey, TrendPoint]]:
    for program, of_program in uses.items():
        file, largest = of_program[0]
        sizes, hosts = (largest.peak_bytes, largest.reserved_bytes), len({of.host for of, _ in of_program})
        identity = file.path, largest.fingerprint, largest.recording_id(file)
        key = _SeriesKey(True, program.module, str(program.number))
        yield key, TrendPoint(day, fleet.name, *sizes, hosts, *identity)


def _named(series: Mapping[_SeriesKey, tuple[TrendPoint, ...]]) -> list[TrendSeries]:
    """Return the series. Where several have a name, the newest capture of each is a part of it."""
    shared = Counter((key.is_program, key.name) for key in series)
    taken, found = Counter[tuple[bool, str]](), []
    for key, points in series.items():
        name = key.name if shared[key[:2]] == 1 else f"{key.name} of {points[-1].capture}"
        taken[key.is_program, name] += 1
        again = taken[key.is_program, name]
        found.append(TrendSeries(name if again == 1 else f"{name} ({again})", key.is_program, points))
    return found


def _by_day(points: Sequence[TrendPoint]) -> tuple[TrendPoint, ...]:
    days: dict[str, TrendPoint] = {}
    for point in points:
        known = days.get(point.day)
        if known is None or point.peak_bytes > known.peak_bytes:
            days[point.day] = point
    return tuple(days[day] for day in sorted(days))


def _rises(
    series: TrendSeries, files: Mapping[str, HostFile], executor: Callable[[], TaskExecutor]
) -> tuple[Rise, ...]:
    """Find the points with a higher peak than the point before, and what changed."""
    pairs = enumerate(pairwise(series.points), 1)
    growth = {at: after.peak_bytes - before.peak_bytes for at, (before, after) in pairs}
    floors = [max(FLOOR_SHARE * point.peak_bytes, FLOOR_BYTES) for point in series.points]
    grown = [at for at, size in growth.items() if size > floors[at - 1]]
    compared = sorted(sorted(grown, key=lambda at: (growth[at], at), reverse=True)[:MAX_COMPARED])
    if not compared:
        return ()
    run, ends = executor(), [(files[point.path], point.key) for point in series.points]
    tasks = {at: run.submit(changes_between, ends[at - 1], ends[at], series.is_program) for at in compared}
    found = []
    for at, task in tasks.items():
        try:
            changes = task.result()
            found.append(Rise(at - 1, at, changes.lines, causes=changes.causes))
        except Exception as error:
            found.append(Rise(at - 1, at, problem=problem_text(error)))
    return tuple(found)
