"""Operations that the compiler runs twice so that a program fits, and the memory that it would need otherwise.

XLA appends `.remat` to the name of the operation that they repeat, or `.remat_compressed` and `.remat_uncompressed` if
it keeps a value in a smaller layout in between.
"""

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.replay.what_if import RowLifetimes, lifetimes, peak_after, replace_lifetimes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask, largest_per, marked
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

FREE = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}  # they compute nothing
REPEATED = re.compile(r"(\.remat(_(un)?compressed)?\d*(\.\d+)?){1,8}(?=\{|$)")  # before the index of a part of a tuple


class RepeatedRows(NamedTuple):
    """Rows that are computed again. Each row's value is needed until the end of its last repetition."""

    repeated: Mask
    needed_until: I64


class CompilerRecomputation(NamedTuple):
    """The number of operations that the compiler repeats, and the bytes by which this lowers the peak."""

    operations: int
    saved_bytes: int


@memoize
def compiler_recomputation(recording: Recording) -> CompilerRecomputation:
    """Return what the compiler repeats. If it repeated nothing, the first results would stay until their last use."""
    found = repeated_rows(recording)
    if recording.program is None or not found.repeated.any():
        return CompilerRecomputation(0, 0)
    program = recording.program
    operations = int(np.count_nonzero(repeats(program.name) & ~program.op.isin(FREE)))
    own = lifetimes(recording)
    changed = np.flatnonzero(found.repeated | (found.needed_until > 0))
    kept = keep_instead(recording, own.take(changed))
    natural = peak_after(recording, replace_lifetimes(recording, changed, kept)).bytes
    return CompilerRecomputation(operations, max(natural - peak(recording).bytes, 0))


def repeats(name: Text) -> Mask:
    """Mark the instructions that repeat another one, by their names in order of the schedule.

    If the compiler has removed the original, its first copy counts as the original.
    """
    again = _repeated(name)
    if not again.any():
        return again
    group = _number_originals(name)
    has_original = marked(len(name) + 1, group[~again])
    copies = np.flatnonzero(again & ~has_original[group])
    _, first = np.unique(group[copies], return_index=True)
    again[copies[first]] = False
    return again


def keep_instead(recording: Recording, lives: RowLifetimes) -> RowLifetimes:
    """Return the lifetimes of rows if the compiler kept values instead of computing them again."""
    repeated, needed_until = repeated_rows(recording)
    return lives._replace(end=np.maximum(lives.end, needed_until[lives.row])).take(~repeated[lives.row])


@memoize
def repeated_rows(recording: Recording) -> RepeatedRows:
    """Find the rows that are computed again, by their names, if the row that they repeat is present."""
    rows, end = recording.allocations, lifetimes(recording).end
    repeated = _repeated(rows.name)
    needed_until = np.zeros(len(rows), dtype=np.int64)
    if recording.program is None or not repeated.any():
        return RepeatedRows(np.zeros(len(rows), dtype=bool), needed_until)
    name = _number_originals(rows.name)
    last = largest_per(name[repeated], end[repeated], len(rows) + 1)  # by name
    exists = marked(len(rows) + 1, name[~repeated])
    needed_until[~repeated] = last[name[~repeated]]
    return RepeatedRows(repeated & exists[name], needed_until)


def _repeated(name: Text) -> Mask:
    """Mark the names of repeated operations. Most programs have none, so the bytes of all names are searched first."""
    found = name.contains(b".remat")
    candidates = np.flatnonzero(found)
    found[candidates] = name.take(candidates).where(REPEATED.search)
    return found


def _number_originals(name: Text) -> I64:
    """Number the names without the marks of repeated instructions, from 1; 0 is no name."""
    numbers: dict[str, int] = {"": 0}
    return name.map(lambda text: numbers.setdefault(REPEATED.sub("", text), len(numbers)), 0, np.int64)
