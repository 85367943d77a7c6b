"""The program whose temporaries an allocator's stack holds.

A TPU's runtime does not allocate a program's temporary memory: it reserves it as stack, at the end of the heap, before
the program runs, and keeps it until another program needs a larger stack or the heap needs the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.linking.executions import count_runs, run_count
from tb_memplugin.analysis.usage.headroom import DEVICE_MEMORY
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording

# The stack has room for the runtime beside the program's temporaries: 16 MiB on a v6e.
MAX_MORE_BYTES, MAX_MORE_SHARE = 64 * 2**20, 0.05


class StackOfProgram(NamedTuple):
    bytes: int  # of the stack
    program: int  # index of the program
    temporary: int  # bytes of its temporaries


def stack_of_program(allocator: Recording, programs: Sequence[Recording], position: int) -> StackOfProgram | None:
    """Return the stack at a position and the program that it fits; None without a stack, or where no program fits.

    Of the programs that ran, the one is chosen whose temporaries fill the stack best.
    """
    reported = allocator.reported
    if reported is None or not 0 <= position < len(reported.reserved):
        return None
    stack = int(reported.reserved[position])
    temporary = _temporary_bytes(allocator, programs)
    spare = stack - temporary
    fits = (temporary > 0) & (spare >= 0) & (spare <= min(MAX_MORE_BYTES, stack // 2) + MAX_MORE_SHARE * temporary)
    if not fits.any():
        return None
    best = int(np.argmax(np.where(fits, temporary, -1)))
    return StackOfProgram(stack, best, int(temporary[best]))


def _temporary_bytes(allocator: Recording, programs: Sequence[Recording]) -> I64:
    """Return the temporaries of each program in the device's memory; 0 for those that did not run."""
    runs = count_runs([allocator])
    found = np.zeros(len(programs), dtype=np.int64)
    for number, program in enumerate(programs):
        if program.memory == DEVICE_MEMORY and run_count(program.title, runs) != 0:
            found[number] = program.regions.size[program.regions.kind == RegionKind.TEMPORARY].sum()
    return found
