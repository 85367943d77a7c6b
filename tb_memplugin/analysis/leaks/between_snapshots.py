"""Growth between the first and the last snapshot of a watched device, and the line that grew most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.source_lines import base_name, heavy_lines
from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.model.recording import Recording
from tb_memplugin.natural_order import natural_key


class GrownLine(NamedTuple):
    """The line that grew most from `first` to `last`. Growth is in bytes."""

    first: Recording
    last: Recording
    bytes: int  # of all lines together
    line: str  # without its folders
    line_bytes: int


def snapshots_of(curve: Recording, others: Iterable[Recording]) -> list[Recording]:
    """Return the snapshots of a watched device, in order of time, or of their names where they have no time."""
    taken = (
        other
        for other in others
        if (other.run, other.memory) == (curve.run, curve.memory)
        and not (other.kind.is_sampled or other.kind.is_failure)
    )
    return sorted(taken, key=lambda other: (_time_ns(other), natural_key(other.title)))


def _time_ns(recording: Recording) -> int:
    return (recording.capture_info and recording.capture_info.time_ns) or 0


def rise(curve: Recording, others: Iterable[Recording]) -> GrownLine | None:
    """Return the growth over the snapshots of a watched device; None without two, or where no known line grew."""
    taken = snapshots_of(curve, others)
    if len(taken) < 2 or not taken[0].length or not taken[-1].length:
        return None
    first, last = taken[0], taken[-1]
    before, after = _lines_at_end(first), _lines_at_end(last)
    grown = {line: size - before.get(line, 0) for line, size in after.items()}
    line = max(grown, key=grown.__getitem__, default="")
    total = int(usage(last).live[-1]) - int(usage(first).live[-1])
    return GrownLine(first, last, total, base_name(line), grown[line]) if line and min(total, grown[line]) > 0 else None


@memoize
def _lines_at_end(recording: Recording) -> Mapping[str, int]:
    """Return the live bytes of each line at the last position."""
    found, _ = heavy_lines(recording, recording.length - 1, None)
    return {each.line: each.bytes for each in found}
