"""Operations that the compiler runs twice so that a program fits, and what the program would need without that.

XLA names them `.remat`, after the operation that they repeat, or `.remat_compressed` and `.remat_uncompressed`, where
it keeps a value in a smaller layout in between.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.replay.what_if import RowLifetimes, lifetimes, peak_after, replace_lifetimes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording

REPEATED = re.compile(r"(\.remat(_(un)?compressed)?\d*(\.\d+)?)+(?=\{|$)")  # before the index of a part of a tuple


class CompilerRecomputation(NamedTuple):
    """How many operations of the schedule the compiler repeats, and by how many bytes this lowers the peak."""

    operations: int
    saved_bytes: int


@memoize
def compiler_recomputation(recording: Recording) -> CompilerRecomputation:
    """Return what the compiler repeats by itself. Without it, the first result would stay until the last use."""
    program, rows = recording.program, recording.allocations
    operations = np.count_nonzero(program.name.where(lambda name: bool(REPEATED.search(name)))) if program else 0
    if program is None or not operations:
        return CompilerRecomputation(0, 0)
    first_name = rows.name.map(lambda name: REPEATED.sub("", name), "", object)
    repeated = np.flatnonzero(rows.name.where(lambda name: bool(REPEATED.search(name))))
    names, code = np.unique(first_name.astype(str), return_inverse=True)
    original = np.setdiff1d(np.flatnonzero(np.isin(code, code[repeated])), repeated)
    own = lifetimes(recording)
    last = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(last, code[repeated], own.end[repeated])
    longer = own.take(original)._replace(end=np.maximum(own.end[original], last[code[original]]))
    change = replace_lifetimes(recording, np.r_[original, repeated], RowLifetimes(*longer))
    return CompilerRecomputation(int(operations), max(peak_after(recording, change).bytes - peak(recording).bytes, 0))
