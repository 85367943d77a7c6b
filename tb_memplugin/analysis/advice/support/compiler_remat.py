"""Rows that the compiler computes a second time, since the program would else exceed the device's memory."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.replay.what_if import RowLifetimes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.chips import BY_NAME
from tb_memplugin.model.recording import Recording

# XLA's rematerialization pass names the copy of `fusion.7` `fusion.7.remat`, and further ones `.remat2` and so on.
CLONE = re.compile(r"(.+)\.remat\d*(?:\.\d+)*")
NEAR = 0.85  # of the limit: XLA stops to compute again where the program fits


def memory_limit(recording: Recording) -> int:
    """Return the memory of the device that a program with copies was compiled for, in bytes.

    Without a name of the chip, the peak decides: it is a little below the limit if the program fits. Else 0 is
    returned, as XLA has computed again all that it can, and does so for half of the batch.
    """
    if recording.capacity:
        return recording.capacity
    found, limits = peak(recording).bytes, {chip.hbm for chip in BY_NAME.values()}
    return min((limit for limit in limits if NEAR * limit <= found <= limit), default=0)


def keep_instead(recording: Recording, passes: ProgramPasses, lives: RowLifetimes) -> RowLifetimes:
    """Return the lifetimes of rows, a sorted part of all, if the compiler kept them instead of computing them again."""
    program, codes = recording.program, recording.allocations.shape.codes
    if program is None or not (again := np.flatnonzero(program.name.contains(b".remat"))).size:
        return lives
    names = {at: found[1] for at in again.tolist() if (found := CLONE.fullmatch(program.name[at]))}
    wanted = set(names.values())
    first = {program.name[at]: at for at in np.flatnonzero(program.name.isin(wanted)).tolist()}
    within = program.computation.codes
    made, end, dropped = passes.made[lives.row], lives.end.copy(), np.zeros(len(lives.row), dtype=bool)
    for at, name in names.items():
        if name not in first or within[first[name]] != within[at]:
            continue
        for clone in np.flatnonzero(made == at).tolist():
            same = codes[lives.row] == codes[lives.row[clone]]
            originals = np.flatnonzero((made == first[name]) & same)
            end[originals] = np.maximum(end[originals], end[clone])
            dropped[clone] = len(originals) > 0
    return lives._replace(end=end).take(~dropped)
