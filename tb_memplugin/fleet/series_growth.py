"""Growth over the files of a series, the series of a capture as one host each, and devices of watched processes.

A watched device counts once: with the peak of its curve, and the lines of its largest snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tb_memplugin.analysis.fleet.peaks import site_name
from tb_memplugin.analysis.isolate import usable
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_snapshots import growth
from tb_memplugin.analysis.usage.steps import MIN_STEPS
from tb_memplugin.errors import InputError
from tb_memplugin.fleet.series import Series
from tb_memplugin.fleet.sessions import Capture, process_of
from tb_memplugin.fleet.summarize import parts_of
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, SeriesGrowth
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording

RunDevice = tuple[str, str]  # a run, which is one process, and a device of it


def join_curves(summaries: Sequence[FileSummary]) -> list[FileSummary]:
    """Return summaries in which a device with a curve is left out of the snapshots of the same run."""
    curves = _largest_peaks([summary for summary in summaries if summary.kind == RecordingKind.WATCH])
    if not curves:
        return list(summaries)
    snapshots = _largest_peaks([summary for summary in summaries if summary.kind != RecordingKind.WATCH])
    return [_joined(summary, curves, snapshots) for summary in summaries]


def _largest_peaks(summaries: Iterable[FileSummary]) -> dict[RunDevice, tuple[str, DeviceSummary]]:
    """Return, for each device of each run, the file with its largest peak, and its summary there."""
    found: dict[RunDevice, tuple[str, DeviceSummary]] = {}
    for summary in summaries:
        for device in summary.devices:
            known = found.get((summary.run, device.device))
            if known is None or device.peak_bytes > known[1].peak_bytes:
                found[summary.run, device.device] = summary.path, device
    return found


def _joined(
    summary: FileSummary,
    curves: dict[RunDevice, tuple[str, DeviceSummary]],
    snapshots: dict[RunDevice, tuple[str, DeviceSummary]],
) -> FileSummary:
    devices = []
    for device in summary.devices:
        path, _ = curves.get((summary.run, device.device), (summary.path, device))
        if path == summary.path:
            _, snapshot = snapshots.get((summary.run, device.device), ("", device))
            devices.append(_with_lines(device, snapshot) if summary.kind == RecordingKind.WATCH else device)
    return replace(summary, devices=tuple(devices))


def _with_lines(curve: DeviceSummary, snapshot: DeviceSummary) -> DeviceSummary:
    """Return a curve's device with the lines of a snapshot, which may be of another moment than the peak."""
    peak = max(curve.peak_bytes, snapshot.peak_bytes)
    other = max(0, peak - sum(site.bytes for site in snapshot.sites))
    leak = snapshot if snapshot.growth else curve
    found = replace(curve, peak_bytes=peak, sites=snapshot.sites, other_bytes=other)
    return replace(found, growth=leak.growth, growth_bytes=leak.growth_bytes, growth_unit=leak.growth_unit)


# Of more files, evenly spaced ones are compared: this limits the recordings in memory at one time.
MAX_FILES, MAX_BYTES = 256, 64 << 20

Growths = Mapping[tuple[str, str], SeriesGrowth]  # by fingerprint and device


def has_growth(series: Series) -> bool:
    """Return whether growth can be measured over the files of a series, that is, whether each has one moment."""
    is_instant = series.kind == RecordingKind.DEVICE_PROFILE
    return is_instant and bool(series.evidence) and len(series.members) >= MIN_STEPS


def read_growth(files: Sequence[HostFile], fingerprint: str) -> list[SeriesGrowth]:
    """Read the files of a series, and return the leak on each device."""
    most = max(MIN_STEPS, min(MAX_FILES, MAX_BYTES // max(1, *(file.size for file in files))))
    stride = -(-len(files) // most)
    recordings: dict[str, list[Recording]] = {}
    for file in files[(len(files) - 1) % stride :: stride]:
        with suppress(InputError):  # which is a problem of the file's summary
            for part in parts_of(file):
                for recording in part.read():
                    recordings.setdefault(recording.memory, []).append(recording)
    return [_growth(fingerprint, memory, of_memory, stride) for memory, of_memory in recordings.items()]


def _growth(fingerprint: str, memory: str, recordings: Sequence[Recording], stride: int) -> SeriesGrowth:
    found = growth(usable(recordings, growth)[0])
    sites = found.leaks.sites
    if sites is None or not len(sites.row) or sites.verdict[0] != Verdict.LEAK:
        return SeriesGrowth(fingerprint, memory, "", 0)
    site = site_name(found.series[int(found.holder[0])], int(sites.row[0]))
    return SeriesGrowth(fingerprint, memory, site, round(float(sites.bytes_per_step[0]) / stride))


def as_hosts(
    capture: Capture, summaries: Iterable[FileSummary], series: Sequence[Series], growths: Growths
) -> list[FileSummary]:
    """Return summaries of a capture, in which each series is one host with the largest peak of each device."""
    hosts = {file.path: process for run in capture.runs if (process := process_of(run)) for file in run.files}
    kept: dict[str, tuple[DeviceSummary, ...]] = {}
    for one in series:
        if one.evidence:
            hosts.update((member.file.path, one.name) for member in one.members)
            kept.update(_largest(one, growths))
    return join_curves(
        [
            replace(each, host=hosts[each.path], file_host=each.host, devices=kept.get(each.path, each.devices))
            if each.path in hosts
            else each
            for each in summaries
        ]
    )


def _largest(series: Series, growths: Growths) -> dict[str, tuple[DeviceSummary, ...]]:
    """Return, by file, the devices that reach their largest peak of the series in that file."""
    largest = _largest_peaks([member.summary for member in series.members])
    fingerprint = series.fingerprint
    return {
        member.file.path: tuple(
            _with_growth(device, growths.get((fingerprint, device.device)))
            for device in member.summary.devices
            if largest[member.summary.run, device.device][0] == member.file.path
        )
        for member in series.members
    }


def _with_growth(device: DeviceSummary, growth: SeriesGrowth | None) -> DeviceSummary:
    if growth is None or not growth.growth:
        return device
    return replace(device, growth=growth.growth, growth_bytes=growth.growth_bytes, growth_unit="profile")
