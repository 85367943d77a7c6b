"""Advice on arguments that are no longer needed at the peak but stay in memory to the end."""

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
    """Yield one piece for all such arguments together."""
    passes = program_passes(recording)
    idle = idle_after_use(recording, passes) if passes is not None else None
    saved = saving(recording, _free_after_use(recording, idle)) if idle is not None and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.names_text
    yield Advice(
        kind=AdviceKind.LATE_FREE,
        title=f"Free {names} before the peak",
        sentence=f"{bytes_text(size)} of {names} are no longer needed at the peak. Freeing {idle.agree('it', 'them')} "
        f"after the last use, instead of at the end of {function_name(recording)}, {saved.effect}.",
        change=f"move the code that reads {names} into a separate jitted function, and delete "
        f"{idle.agree('it', 'them')} in the caller before running the rest",
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving=saved,
    )


def _free_after_use(recording: Recording, idle: IdleArguments) -> Change:
    """Free the arguments after their last use, except memory that a result reuses."""
    region, own, rows = recording.allocations.region, lifetimes(recording), idle.rows
    alone = ~np.isin(region[rows], region[np.setdiff1d(np.arange(len(region)), rows)])
    regions, gone = region[rows[alone]].astype(np.int64), rows[alone]
    without = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), gone)
    return combine(without, Change(np.full(len(gone), -1), idle.last[alone] + 1, own.bytes[gone]))
