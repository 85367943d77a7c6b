"""Facts of captures and runs that are known without reading files: hosts, faults, and whether devices are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tb_memplugin import readers
from tb_memplugin.analysis.fleet.host_names import missing_hosts
from tb_memplugin.errors import InputError
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.fleet.scan import fleet_of
from tb_memplugin.fleet.series import find_series
from tb_memplugin.fleet.series_growth import as_hosts, has_growth
from tb_memplugin.fleet.sessions import Capture, alone, hosts_of
from tb_memplugin.fleet.summarize import outline, with_programs
from tb_memplugin.fleet.tasks import problem_text
from tb_memplugin.logdir import HostFile, Run, path_text
from tb_memplugin.model.fleet import FileSummary, KnownCapture, ProgramSummary
from tb_memplugin.model.recording import Recording


def has_several(run: Run, recordings: Iterable[Recording]) -> bool:
    """Return whether a run has several hosts, or devices to compare. Each file without recordings counts as a host."""
    by_source: dict[str, list[Recording]] = defaultdict(list)
    for recording in recordings:
        by_source[recording.source].append(recording)
    capture = alone(run)
    summaries = {file.path: outline(file, name, by_source[path_text(file.path)]) for file, name in capture.files}
    series = find_series(capture.runs, summaries)
    fleet = fleet_of(capture, as_hosts(capture, summaries.values(), series, {}), series, is_complete=False)
    memories = [device.summary.memory for device in fleet.devices]
    return len(fleet.hosts) > 1 or len(set(memories)) < len(memories)


MAX_FILES = 1024  # files of the first captures are looked up in the cache up to this number, which takes about 0.3 s


def known_captures(captures: Sequence[Capture], cache: SummaryCache | None) -> list[KnownCapture]:
    """Return captures with their known faults, in the given order. Files are not read."""
    wanted: list[HostFile] = []
    for capture in captures:
        files = [file for file, _ in capture.files]
        if len(wanted) + len(files) > MAX_FILES:
            break
        wanted += files
    summaries = cache.files(wanted) if cache else {}
    prints = {use.fingerprint for summary in summaries.values() for use in summary.programs}
    programs = cache.programs(prints) if cache and prints else {}
    return [_known(capture, summaries, programs, cache) for capture in captures]


def _known(
    capture: Capture,
    summaries: Mapping[str, FileSummary],
    programs: Mapping[str, ProgramSummary],
    cache: SummaryCache | None,
) -> KnownCapture:
    found: list[FileSummary] = []
    for file, run in capture.files:
        summary = summaries.get(file.path) or _without_reading(file)
        if summary is not None:
            found.append(replace(summary, run=run))
    known = {summary.path: summary for summary in with_programs(found, programs)}
    series = find_series(capture.runs, known)
    prints = [each.fingerprint for each in series if has_growth(each)]
    growths = {(each.fingerprint, each.device): each for each in (cache.growths(prints) if cache else ())}
    fleet = fleet_of(capture, as_hosts(capture, known.values(), series, growths), series, is_complete=False)
    by_name = dict.fromkeys(host for run in capture.runs for host in hosts_of(run))
    hosts = fleet.hosts if len(found) == len(capture.files) else tuple(by_name)
    missing = tuple(missing_hosts(hosts) or ())
    return KnownCapture(replace(fleet, missing=missing), hosts, capture.began, len(capture.files))


def _without_reading(file: HostFile) -> FileSummary | None:
    """Return the summary of a file whose name or size shows that it cannot be read; None for others."""
    problem = file.unreadable
    if not file.size and not problem:
        try:
            readers.open_file(b"", file.path, host=file.host)
        except InputError as error:
            problem = problem_text(error)
    return FileSummary(file.path, file.size, file.stamp, file.host, "", problem=problem) if problem else None
