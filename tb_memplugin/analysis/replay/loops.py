"""Loops in a program's flattened schedule: where their bodies begin, and which loop each position runs in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.recording import Recording


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops of a program, inner loops before the outer loops that contain them."""

    position: I64  # of the loop's instruction
    first: I64  # of its body
    innermost: I32  # per position: the innermost loop whose body contains it, -1 for none

    def __len__(self) -> int:
        return len(self.position)

    @property
    def parent(self) -> I32:
        """The loop that contains each loop, -1 for none."""
        found: I32 = self.innermost[self.position]
        return found


@memoize
def program_loops(recording: Recording) -> Loops:
    """Return the loops of a program. The schedule has a loop's condition and body right before the loop."""
    program = recording.program
    innermost = np.full(recording.length, -1, dtype=np.int32)
    if program is None or not recording.length:
        return Loops(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), innermost)
    code = program.computation.codes
    found = np.flatnonzero(program.op.isin({"while"}))
    found = found[found > 0]
    found = found[code[found - 1] != code[found]]
    length = np.int64(recording.length)
    place = np.sort(code.astype(np.int64) * length + np.arange(length))  # positions of each computation
    before = np.searchsorted(place, code[found] * length + found) - 1
    # A computation that is called twice occurs twice; the caller's own positions are between the two.
    same = (before >= 0) & (place[before] // length == code[found])
    start = np.where(same, place[before] % length + 1, 0)
    first = place[np.searchsorted(place, code[found - 1] * length + start)] % length
    for number, (begin, loop) in enumerate(zip(first.tolist(), found.tolist(), strict=True)):
        inside = innermost[begin:loop]
        inside[inside < 0] = number
    return Loops(found.astype(np.int64), first, innermost)
