"""Arrays of which a dimension changed, and nothing else: those of another batch, sequence or number of microbatches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from tb_memplugin.analysis.changes.ledger import Ledger, LedgerRow, total
from tb_memplugin.analysis.changes.names import dtype_of, size_of
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind

MIN_DIMENSIONS = 3
MIN_PATHS = 2  # or shapes, that change alike


def rescaled(ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield changes of a dimension of computed arrays that no argument shows, as microbatches make."""
    gone = [row for row in ledger.open if row.is_old]
    found = defaultdict[tuple[int, int], list[tuple[LedgerRow, LedgerRow]]](list)
    for row in ledger.open:
        for old in gone if row.is_new else ():
            if _alike(old, row) and (changed := _changed_alike(old.shape, row.shape)) is not None:
                found[changed].append((old, row))
    for (was, now), pairs in sorted(found.items(), key=lambda one: -sum(new.bytes for _, new in one[1])):
        old, new = max(pairs, key=lambda pair: pair[1].bytes - pair[0].bytes)
        paths = {row.template for before, row in pairs if before.template == row.template}
        shapes = min(len({before.shape for before, _ in pairs}), len({row.shape for _, row in pairs}))
        if max(len(paths), shapes) >= MIN_PATHS and not (old.claimed or new.claimed):
            rows = ledger.claim(rescaled_from(ledger, was, now))
            arrays = sum(row.arrays_after for row in rows)
            yield ChangeCause(
                ChangeCauseKind.SHAPE, (), total(rows), old.shape, new.shape, arrays, shape=new.shape, example=new.path
            )


def _alike(old: LedgerRow, new: LedgerRow) -> bool:
    """Return whether rows have one path, or are as many arrays of as many dimensions.

    Compilers name the stacks of a scan after anything. Arrays of few dimensions agree in the others by chance.
    """
    same = old.arrays_before == new.arrays_after and len(size_of(old.shape)) >= MIN_DIMENSIONS
    return old.role == new.role and (old.template == new.template or same)


def rescaled_from(ledger: Ledger, was: int, now: int) -> Callable[[LedgerRow], bool]:
    """Return a test for rows of one side of which the other side has the same, with the dimension changed."""
    gone, come = {row.shape for row in ledger.open if row.is_old}, {row.shape for row in ledger.open if row.is_new}
    pairs = [(a, b) for a in gone for b in come if _is_rescaled(a, b, was, now)]
    old, new = {a for a, _ in pairs}, {b for _, b in pairs}
    return lambda row: (row.is_old and row.shape in old) or (row.is_new and row.shape in new)


def _is_rescaled(old: str, new: str, was: int, now: int) -> bool:
    """Return whether a shape differs from another only by the change of one dimension, or of a multiple of it."""
    a, b = size_of(old), size_of(new)
    if dtype_of(old) != dtype_of(new) or len(a) != len(b) or a == b:
        return False
    return all(x == y or (x * now == y * was) for x, y in zip(a, b, strict=True))


def _changed_alike(old: str, new: str) -> tuple[int, int] | None:
    """Return the one change of dimensions between two shapes; None where there are several or none."""
    a, b = size_of(old), size_of(new)
    changed = {(x, y) for x, y in zip(a, b, strict=False) if x != y}
    return changed.pop() if len(a) == len(b) and len(changed) == 1 and dtype_of(old) == dtype_of(new) else None
