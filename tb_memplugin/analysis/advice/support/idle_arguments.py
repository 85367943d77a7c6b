"""Arguments that are not needed at the peak: not read before it, or not read after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import is_worthwhile
from tb_memplugin.analysis.advice.support.arguments import SMALL_SHARE, argument_parts
from tb_memplugin.analysis.advice.support.passes import PRODUCTS, ProgramPasses
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree

MAX_MOVES = 8  # of one value in a row, between memories and layouts
MIN_IDLE_SHARE = 4  # a fourth of the program; arguments that are read sooner are not worth moving
KEPT = (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE)  # the caller keeps these for its next call


class IdleArguments(NamedTuple):
    """Arguments most of whose bytes are idle, and their idle rows."""

    names: list[str]
    rows: I64
    first: I64  # per row: the first position that reads it
    last: I64  # per row: the last position that reads it

    @property
    def names_text(self) -> str:
        return ", ".join(self.names)

    def agree(self, singular: str, plural: str) -> str:
        return agree(len(self.names), singular, plural)


def state_idle_before_peak(recording: Recording, passes: ProgramPasses) -> IdleArguments:
    """Find the state of optimizers most of which is first read after the peak, and not soon after the program begins.

    The rows are the whole state. State that has no path of its own, because it lies beside the weights, is not found.
    """
    role = roles(recording)
    top, begin = peak(recording).position, int(passes.uses[1].min(initial=passes.length))
    soon = begin + (passes.length - begin) // MIN_IDLE_SHARE

    def waits(rows: I64, first: I64, last: I64) -> Mask:
        found: Mask = (last >= 0) & (role[rows] == Role.OPTIMIZER_STATE) & (first > max(top, soon))
        return found

    return _idle(recording, passes, waits, whole=True)


def idle_after_use(recording: Recording, passes: ProgramPasses) -> IdleArguments:
    """Find the arguments that are last read before the peak and long before the end, and that no later call needs."""
    top, begin = peak(recording).position, int(passes.uses[1].min(initial=passes.length))
    late, role = passes.length - (passes.length - begin) // MIN_IDLE_SHARE, roles(recording)

    def is_over(rows: I64, first: I64, last: I64) -> Mask:
        found: Mask = (last >= 0) & (last < min(top, late)) & ~np.isin(role[rows], KEPT)
        return found & np.isin(rows, separable)

    separable = row_of_value(recording)[separate_reads(recording, passes)[0]]
    return _idle(recording, passes, is_over)


def separate_reads(recording: Recording, passes: ProgramPasses) -> tuple[I64, I64]:
    """Return pairs of values: an argument that another function can read instead, and what that function returns.

    Operations of the user's own, outside of loops, read the argument, and nothing else that is large: neither weights
    nor activations.
    Compilers add operations without a name, which only move a value, and such as prepare an operand of a matrix product
    or a convolution, with the name of that operation. No code of the user contains these.
    """
    values, at, program = passes.values, np.arange(passes.length), recording.program
    assert program is not None
    entry = program.computation.isin({program.entry_computation})
    value, position = values.used_value, values.use
    is_code = (passes.named_by == at) & ~passes.does(*PRODUCTS) & entry
    moves = passes.named_by != at
    origin = np.where(values.argument >= 0, np.arange(len(values.argument)), -1)
    for _ in range(MAX_MOVES):
        source, moved = np.full(passes.length + 1, -1), moves[position] & (origin[value] >= 0)
        source[position[moved]] = origin[value[moved]]
        new = (origin < 0) & (source[values.producer] >= 0)
        if not new.any():
            break
        origin[new] = source[values.producer[new]]
    total = np.bincount(position, values.elements[value], passes.length)
    elements = values.elements[value]
    alone = is_code[position] & (SMALL_SHARE * (total[position] - elements) <= elements)
    read = (origin[value] >= 0) & ~moves[position]
    together = np.unique(origin[value[read & ~alone]])
    chosen = read & alone & ~np.isin(origin[value], together)
    reader = np.full(passes.length + 1, -1)
    reader[position[chosen]] = origin[value[chosen]]
    returned = np.flatnonzero(reader[values.producer] >= 0)
    return reader[values.producer[returned]], returned


def _idle(
    recording: Recording, passes: ProgramPasses, which: Callable[[I64, I64, I64], Mask], whole: bool = False
) -> IdleArguments:
    """Collect the arguments whose large rows are mostly idle: these rows, or all. Small ones are ignored.

    A small one is, for example, a counter.
    """
    size, everywhere = recording.allocations.size, np.ones(passes.length, dtype=bool)
    first, last = passes.first_use(everywhere), passes.last_use(everywhere)
    names, found = [], [np.empty(0, dtype=np.int64)]
    parts = list(argument_parts(recording))
    ambiguous = {name for name, count in Counter(part.name for part in parts).items() if count > 1}
    for share in parts:
        if share.name in ambiguous:
            continue
        large = share.rows[SMALL_SHARE * size[share.rows] >= size[share.rows].max(initial=0)]
        rows = large[which(large, first[large], last[large])]
        idle_bytes = int(size[rows].sum())
        if 2 * idle_bytes > int(size[share.rows].sum()) and is_worthwhile(recording, idle_bytes):
            names.append(share.name)
            found.append(share.rows if whole else rows)
    rows = np.concatenate(found)
    return IdleArguments(names, rows, first[rows], last[rows])
