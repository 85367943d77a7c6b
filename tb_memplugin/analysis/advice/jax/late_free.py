"""Arguments that are not read any more at the peak, and held to the end all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, Kind, by_size, saving
from tb_memplugin.analysis.advice.support.arguments import jitted
from tb_memplugin.analysis.advice.support.idle_arguments import Idle, over
from tb_memplugin.analysis.advice.support.passes import passes
from tb_memplugin.analysis.replay.what_if import Change, join, lives, released
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    """One piece, of all such arguments together."""
    known = passes(recording)
    idle = over(recording, known) if known is not None else None
    saved = saving(recording, _freed(recording, idle)) if idle is not None and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.listed
    yield Advice(
        kind=Kind.LATE_FREE,
        title=f"Free {names} before the peak",
        sentence=f"{bytes_text(size)} of {names} {idle.words('is', 'are')} not read any more at the peak. If the "
        f"device need not hold {idle.words('it', 'them')} to the end of {jitted(recording)}, the peak is "
        f"{bytes_text(saved.bytes)} lower.",
        change=f"compute what is made of {names} in a jitted function of its own, and let the caller drop "
        f"{idle.words('it', 'them')} before the rest runs",
        rows=by_size(recording, idle.rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _freed(recording: Recording, idle: Idle) -> Change:
    """Gone after the last use; memory that a result takes over stays."""
    region, own, rows = recording.allocations.region, lives(recording), idle.rows
    alone = ~np.isin(region[rows], region[np.setdiff1d(np.arange(len(region)), rows)])
    regions, gone = region[rows[alone]].astype(np.int64), rows[alone]
    without = released(recording, regions, np.zeros(len(regions), dtype=np.int64), gone)
    return join(without, Change(np.full(len(gone), -1), idle.last[alone] + 1, own.bytes[gone]))
