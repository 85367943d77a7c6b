"""Arguments that are not read any more at the peak, and held to the end all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import function_name
from tb_memplugin.analysis.advice.support.idle_arguments import IdleArguments, idle_after_use
from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, shrink_regions
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    """One piece, of all such arguments together."""
    known = program_passes(recording)
    idle = idle_after_use(recording, known) if known is not None else None
    saved = saving(recording, _free_after_use(recording, idle)) if idle is not None and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.listed
    yield Advice(
        kind=AdviceKind.LATE_FREE,
        title=f"Free {names} before the peak",
        sentence=f"{bytes_text(size)} of {names} {idle.words('is', 'are')} not read any more at the peak. If the "
        f"device need not hold {idle.words('it', 'them')} to the end of {function_name(recording)}, the peak is "
        f"{bytes_text(saved.bytes)} lower.",
        change=f"compute what is made of {names} in a jitted function of its own, and let the caller drop "
        f"{idle.words('it', 'them')} before the rest runs",
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _free_after_use(recording: Recording, idle: IdleArguments) -> Change:
    """Gone after the last use; memory that a result takes over stays."""
    region, own, rows = recording.allocations.region, lifetimes(recording), idle.rows
    alone = ~np.isin(region[rows], region[np.setdiff1d(np.arange(len(region)), rows)])
    regions, gone = region[rows[alone]].astype(np.int64), rows[alone]
    without = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), gone)
    return combine(without, Change(np.full(len(gone), -1), idle.last[alone] + 1, own.bytes[gone]))
