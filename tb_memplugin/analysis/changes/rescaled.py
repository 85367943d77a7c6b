"""Arrays of which a dimension changed, and nothing else: those of another batch, sequence or number of microbatches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

from tb_memplugin.analysis.changes.ledger import Ledger, LedgerRow, total
from tb_memplugin.analysis.changes.names import dtype_of, size_of
from tb_memplugin.analysis.changes.row_paths import UNNAMED
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind

MIN_DIMENSIONS = 3
MIN_PATHS = 2  # or shapes, that change alike


def rescaled(ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield changes of a dimension of computed arrays that no argument shows, as microbatches make."""
    renamed = ledger.renamed()
    changed_rows = [row for row in ledger.open if (row.role, row.shape) not in renamed]
    gone = [row for row in changed_rows if row.is_old]
    found = defaultdict[Fraction, list[tuple[LedgerRow, LedgerRow]]](list)
    for row in changed_rows:
        for old in gone if row.is_new else ():
            if _alike(old, row) and (factor := _factor(old.shape, row.shape)) is not None:
                found[factor].append((old, row))
    for factor, pairs in sorted(found.items(), key=lambda one: -sum(new.bytes for _, new in one[1])):
        pairs = [(old, new) for old, new in pairs if not (old.claimed or new.claimed)]
        paths = {new.template for old, new in pairs if old.template == new.template}
        shapes = min(len({old.shape for old, _ in pairs}), len({new.shape for _, new in pairs}))
        if max(len(paths), shapes) >= MIN_PATHS:
            old, new = max(
                pairs, key=lambda pair: (not pair[1].path.startswith(UNNAMED), pair[1].bytes - pair[0].bytes)
            )
            rows = ledger.claim(rescaled_from(ledger, factor))
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


def rescaled_from(ledger: Ledger, factor: Fraction) -> Callable[[LedgerRow], bool]:
    """Return a test for rows of one side of which the other side has the same, with dimensions changed by a factor."""
    gone, come = {row.shape for row in ledger.open if row.is_old}, {row.shape for row in ledger.open if row.is_new}
    pairs = [(a, b) for a in gone for b in come if _is_rescaled(a, b, factor)]
    old, new = {a for a, _ in pairs}, {b for _, b in pairs}
    return lambda row: (row.is_old and row.shape in old) or (row.is_new and row.shape in new)


def _is_rescaled(old: str, new: str, factor: Fraction) -> bool:
    """Return whether a shape differs from another only by dimensions that are larger or smaller by one factor."""
    a, b = size_of(old), size_of(new)
    if dtype_of(old) != dtype_of(new) or len(a) != len(b) or a == b:
        return False
    more, less = factor.as_integer_ratio()
    return all(x == y or x * more == y * less for x, y in zip(a, b, strict=True))


def _factor(old: str, new: str) -> Fraction | None:
    """Return the factor between two shapes that differ by one dimension, or by several alike; else None."""
    a, b = size_of(old), size_of(new)
    if len(a) != len(b) or dtype_of(old) != dtype_of(new) or 0 in a:
        return None
    factors = {Fraction(y, x) for x, y in changed_dimensions(a, b)}
    return factors.pop() if len(factors) == 1 else None


def changed_dimensions(old: tuple[int, ...], new: tuple[int, ...]) -> set[tuple[int, int]]:
    """Return the dimensions that differ, before and after."""
    return {(a, b) for a, b in zip(old, new, strict=False) if a != b}
