"""Advice on arguments that are no longer needed at the peak but stay in memory to the end.

XLA frees no argument before a program ends, donated or not; only results reuse the memory of donated arguments.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import function_name
from tb_memplugin.analysis.advice.support.idle_arguments import IdleArguments, idle_after_use, separate_reads
from tb_memplugin.analysis.advice.support.passes import ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, shrink_regions
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

CODE = """\
prepared = jax.block_until_ready(jax.jit(prepare)({names}))  # the code of {function} that reads {names}
jax.tree.map(lambda x: x.delete(), ({names}))  # then call {function} with `prepared` instead"""


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all such arguments together."""
    passes = program_passes(recording)
    idle = idle_after_use(recording, passes) if passes is not None else None
    saved = saving(recording, _in_two_programs(recording, passes, idle)) if passes and idle and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.names_text
    yield Advice(
        kind=AdviceKind.LATE_FREE,
        title=f"Free {names} before the peak",
        sentence=f"{bytes_text(size)} of {names} are no longer needed at the peak. Freeing {idle.agree('it', 'them')} "
        f"after the last use, instead of at the end of {function_name(recording)}, {saved.effect}.",
        change=CODE.format(names=names, function=function_name(recording)),
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving=saved,
    )


def _in_two_programs(recording: Recording, passes: ProgramPasses, idle: IdleArguments) -> Change:
    """Remove the arguments, except memory that a result reuses. What a first program returns is there for all of it."""
    table, own, rows, row = recording.allocations, lifetimes(recording), idle.rows, row_of_value(recording)
    alone = ~np.isin(table.region[rows], table.region[np.setdiff1d(np.arange(len(table)), rows)])
    regions, gone = table.region[rows[alone]].astype(np.int64), rows[alone]
    without = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), gone)
    argument, returned = separate_reads(passes)
    kept = row[returned[np.isin(row[argument], gone)]]
    kept = np.unique(kept[kept >= 0]).astype(np.int64)
    before = Change(np.full(len(kept), -1), own.start[kept], own.bytes[kept])
    return combine(without, before, Change(own.end[kept], np.full(len(kept), recording.length), own.bytes[kept]))
