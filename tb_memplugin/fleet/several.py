"""Runs of several hosts or devices, found by the rules of a fleet from their recordings, without its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tb_memplugin.fleet.scan import fleet_of
from tb_memplugin.fleet.series import find_series
from tb_memplugin.fleet.series_growth import as_hosts
from tb_memplugin.fleet.sessions import alone
from tb_memplugin.fleet.summarize import outline
from tb_memplugin.logdir import Run, path_text
from tb_memplugin.model.recording import Recording


def has_several(run: Run, recordings: Iterable[Recording]) -> bool:
    """Return whether a run has several hosts, or devices that are compared. Each file without recordings is a host."""
    by_source: dict[str, list[Recording]] = defaultdict(list)
    for recording in recordings:
        by_source[recording.source].append(recording)
    capture = alone(run)
    summaries = {file.path: outline(file, name, by_source[path_text(file.path)]) for file, name in capture.files}
    series = find_series(capture.runs, summaries)
    fleet = fleet_of(capture, as_hosts(capture, summaries.values(), series, {}), series, is_complete=False)
    memories = [device.summary.memory for device in fleet.devices]
    return len(fleet.hosts) > 1 or len(set(memories)) < len(memories)
