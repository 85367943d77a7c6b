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
    saved = saving(recording, *_in_two_programs(recording, passes, idle)) if passes and idle and idle.names else None
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


def _in_two_programs(recording: Recording, passes: ProgramPasses, idle: IdleArguments) -> tuple[Change, Change]:
    """Remove the arguments, except memory that a result reuses; a second program has what the first one returns.

    In the second case that is returned, it also has this once more, such as padded.
    """
    table, own, rows, row = recording.allocations, lifetimes(recording), idle.rows, row_of_value(recording)
    alone = ~np.isin(table.region[rows], table.region[np.setdiff1d(np.arange(len(table)), rows)])
    regions, gone = table.region[rows[alone]].astype(np.int64), rows[alone]
    without = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), gone)
    argument, returned = separate_reads(recording, passes)
    chosen = np.isin(row[argument], gone)
    argument, returned = argument[chosen], returned[chosen]
    kept, elements = row[returned].astype(np.int64), passes.values.elements
    # A result in another memory is an argument in this one, about as large as its share of the elements.
    estimated = own.bytes[row[argument]] * elements[returned] // np.maximum(elements[argument], 1)
    size = np.where(kept >= 0, own.bytes[kept], estimated)
    first, last = np.full(len(kept), -1), np.full(len(kept), recording.length)
    before = Change(first, np.where(kept >= 0, own.start[kept], last), size)
    after = Change(np.where(kept >= 0, own.end[kept], last), last, size)
    return combine(without, before, after), combine(without, Change(first, last, size))
