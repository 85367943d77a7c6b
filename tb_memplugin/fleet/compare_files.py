"""The lines whose bytes at the peak differ between two files."""

from __future__ import annotations

from typing import NamedTuple

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.changes.explain import explain_change
from tb_memplugin.analysis.changes.facts import facts
from tb_memplugin.analysis.compare.comparison import CompareBy, compare
from tb_memplugin.errors import InputError
from tb_memplugin.fleet.programs import use_of
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.changes import ChangeCause
from tb_memplugin.model.fleet_trend import TrendChange
from tb_memplugin.model.recording import Recording

MAX_CHANGES = 5
MIN_SHARE = 0.05  # of the growth


class ChangesBetween(NamedTuple):
    """Causes of a higher peak, the largest growth first: lines of the source, and of a program also its changes."""

    lines: tuple[TrendChange, ...]
    causes: tuple[ChangeCause, ...] = ()


def changes_between(before: tuple[HostFile, str], after: tuple[HostFile, str], is_program: bool) -> ChangesBetween:
    """Compare a device of two files, or a program, named by device or fingerprint."""
    a, b = _recording(*before, is_program), _recording(*after, is_program)
    found = compare(a, b, by=CompareBy.SOURCE)
    growth = found.total_b - found.total_a
    changes = [TrendChange(step.label, step.bytes_a, step.bytes_b) for step in found.steps]
    lines = [change for change in changes if change.bytes_after - change.bytes_before > MIN_SHARE * growth]
    causes = explain_change(facts(a), facts(b)).causes if is_program else ()
    raising = tuple(cause for cause in causes if cause.bytes > MIN_SHARE * growth)
    return ChangesBetween(tuple(lines[:MAX_CHANGES]), raising[:MAX_CHANGES])


def _recording(file: HostFile, key: str, is_program: bool) -> Recording:
    data, skipped = logdir.read_content(file)
    for part in readers.open_file(data, file.path, host=file.host, skipped=skipped):
        if part.kind.has_program == is_program and (not is_program or use_of(part).fingerprint == key):
            for recording in part.read():
                if recording.is_main_memory if is_program else recording.memory == key:
                    return recording
    raise InputError("The file has changed", file.path, "run the command again")
