"""Arguments that nobody needs at the peak: not read before it, or not any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import is_worthwhile
from tb_memplugin.analysis.advice.support.arguments import SMALL_SHARE, argument_parts
from tb_memplugin.analysis.advice.support.passes import Bools, ProgramPasses
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

LONG = 4  # a fourth of the program: what is read sooner is not worth moving
KEPT = (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE)  # by the caller, for its next call


class IdleArguments(NamedTuple):
    """Arguments that are idle with most of their bytes, and the rows that are."""

    names: list[str]
    rows: I64
    first: I64  # per row: the first position that reads it
    last: I64  # and the last

    @property
    def listed(self) -> str:
        return ", ".join(self.names)

    def words(self, of_one: str, of_several: str) -> str:
        return of_one if len(self.names) == 1 else of_several


def idle_before_peak(recording: Recording, known: ProgramPasses) -> IdleArguments:
    """Not read before the peak, nor soon after the program begins."""
    at, begin = peak(recording).position, int(known.uses[1].min(initial=known.length))
    soon = begin + (known.length - begin) // LONG

    def waits(rows: I64, first: I64, last: I64) -> Bools:
        used = last >= 0
        found: Bools = used & (first > at) & (first[used].min(initial=known.length) > soon)
        return found

    return _idle(recording, known, waits)


def idle_after_use(recording: Recording, known: ProgramPasses) -> IdleArguments:
    """Not read any more at the peak, nor soon before the program ends, and not the caller's for its next call."""
    at, begin = peak(recording).position, int(known.uses[1].min(initial=known.length))
    late, role = known.length - (known.length - begin) // LONG, roles(recording)

    def is_over(rows: I64, first: I64, last: I64) -> Bools:
        found: Bools = (last >= 0) & (last < min(at, late)) & ~np.isin(role[rows], KEPT)
        return found

    return _idle(recording, known, is_over)


def _idle(recording: Recording, known: ProgramPasses, which: Callable[[I64, I64, I64], Bools]) -> IdleArguments:
    """A counter among large arrays may be read at any time."""
    size, everywhere = recording.allocations.size, np.ones(known.length, dtype=bool)
    first, last = known.first_use(everywhere), known.last_use(everywhere)
    names, found = [], [np.empty(0, dtype=np.int64)]
    for share in argument_parts(recording):
        large = share.rows[SMALL_SHARE * size[share.rows] >= size[share.rows].max(initial=0)]
        rows = large[which(large, first[large], last[large])]
        held = int(size[rows].sum())
        if 2 * held > int(size[share.rows].sum()) and is_worthwhile(recording, held):
            names.append(share.name)
            found.append(rows)
    rows = np.concatenate(found)
    return IdleArguments(names, rows, first[rows], last[rows])
