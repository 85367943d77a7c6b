"""Devices of watched processes, counted once: with the peak of the curve, and the lines of the largest snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_memplugin.model.fleet import DeviceSummary, FileSummary
from tb_memplugin.model.kinds import RecordingKind

RunDevice = tuple[str, str]  # a run, which is one process, and a device of it


def join_curves(summaries: Sequence[FileSummary]) -> list[FileSummary]:
    """Return summaries in which devices that have a curve are in no snapshot of the same run."""
    curves = _largest([summary for summary in summaries if summary.kind == RecordingKind.WATCH])
    if not curves:
        return list(summaries)
    snapshots = _largest([summary for summary in summaries if summary.kind != RecordingKind.WATCH])
    return [_joined(summary, curves, snapshots) for summary in summaries]


def _largest(summaries: Sequence[FileSummary]) -> dict[RunDevice, tuple[str, DeviceSummary]]:
    """Return the path and the device with the largest peak, of each device of each run."""
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
    found = replace(curve, peak_bytes=peak, sites=snapshot.sites, other_bytes=other)
    if not snapshot.growth:
        return found
    leak = snapshot.growth, snapshot.growth_bytes, snapshot.growth_unit
    return replace(found, growth=leak[0], growth_bytes=leak[1], growth_unit=leak[2])
