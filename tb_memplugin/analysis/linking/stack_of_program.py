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
    program: I64  # per position: the index of the program whose temporaries the stack holds, -1 for none
    stack: I64  # per position: bytes of the stack; 0 where no program fits
    temporary: I64  # per program: bytes of its temporaries; 0 if it did not run


def stack_of_program(allocator: Recording, programs: Sequence[Recording]) -> StackOfProgram:
    """Find the program that fits the stack at each position: of those that ran, the one that fills it best."""
    temporary = _temporary_bytes(allocator, programs)
    reserved = allocator.reported.reserved if allocator.reported is not None else np.empty(0, np.int64)
    if not len(programs):
        return StackOfProgram(np.full(len(reserved), -1), np.zeros_like(reserved), temporary)
    # The largest temporaries that are not larger than the stack; of equal programs the first.
    order = np.lexsort((-np.arange(len(programs)), temporary))
    best = order[np.maximum(np.searchsorted(temporary[order], reserved, "right") - 1, 0)]
    needed, spare = temporary[best], reserved - temporary[best]
    most = np.minimum(MAX_MORE_BYTES, reserved // 2) + MAX_MORE_SHARE * needed
    fits = (needed > 0) & (spare >= 0) & (spare <= most)
    return StackOfProgram(np.where(fits, best, -1), np.where(fits, reserved, 0), temporary)


def _temporary_bytes(allocator: Recording, programs: Sequence[Recording]) -> I64:
    """Return the temporaries of each program in the device's memory; 0 for those that did not run."""
    runs = count_runs([allocator])
    found = np.zeros(len(programs), dtype=np.int64)
    for number, program in enumerate(programs):
        if program.memory == DEVICE_MEMORY and run_count(program.title, runs) != 0:
            found[number] = program.regions.size[program.regions.kind == RegionKind.TEMPORARY].sum()
    return found
