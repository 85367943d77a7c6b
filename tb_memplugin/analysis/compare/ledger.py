"""The differences between the arrays of two peaks. Each is claimed by one cause at most, so that causes add up."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tb_memplugin.analysis.compare.stable_paths import dtype_of, size_of, template
from tb_memplugin.analysis.ownership.by_model import NO_PATH
from tb_memplugin.model.changes import ArrayFacts, ChangeCause, ChangeCauseKind, Difference, MemoryFacts

ROW_OF_ARGUMENT = {"parameter", "optimizer state", "input", "state", "unknown", "output"}
COMPUTED = {"activation", "temporary", "gradient"}
COMPUTED_OR_OUTPUT = {*COMPUTED, "output"}


@dataclass(slots=True)
class LedgerRow(Difference):
    """A difference that a cause can claim."""

    template: str = ""  # of the path after, with * for each number
    claimed: bool = False

    @property
    def size(self) -> tuple[int, ...]:
        return size_of(self.shape)

    @property
    def dtype(self) -> str:
        return dtype_of(self.shape)

    @property
    def arrays(self) -> int:
        return self.arrays_after - self.arrays_before

    @property
    def is_old(self) -> bool:
        return not self.arrays_after

    @property
    def is_new(self) -> bool:
        return not self.arrays_before


class Ledger:
    """Rows for the arrays of both sides. Arrays with one path template, role and shape share a row.

    In recordings that are no programs, they also have one function, because their paths are only names.
    """

    def __init__(self, before: MemoryFacts, after: MemoryFacts, renamed: Mapping[str, str]) -> None:
        """Make rows of the arrays at both peaks. `renamed`: the path after of each argument, by its path before."""
        self._by_function = not after.kind.has_program
        self._arguments = {template(argument.path) for side in (before, after) for argument in side.arguments}
        self._rows: dict[tuple[str, str, str, str], LedgerRow] = {}
        for array in before.arrays:
            row = self._row(array, renamed.get(array.path, array.path))
            row.arrays_before += array.arrays
            row.bytes_before += array.bytes
        for array in after.arrays:
            row = self._row(array, array.path)
            row.path = array.path
            row.arrays_after += array.arrays
            row.bytes_after += array.bytes

    def _row(self, array: ArrayFacts, path: str) -> LedgerRow:
        key = (template(path), array.function if self._by_function else "", array.role, array.shape)
        return self._rows.setdefault(
            key, LedgerRow(array.path, array.function, array.role, array.shape, template=key[0])
        )

    @property
    def open(self) -> list[LedgerRow]:
        """The rows that differ and have no cause yet."""
        return [row for row in self._rows.values() if not row.claimed and (row.bytes or row.arrays)]

    def is_computed(self, row: LedgerRow) -> bool:
        """Return whether the program computes these arrays, and they are no results."""
        return row.role != "output" and row.template not in self._arguments

    def claim_arguments(self, paths: Iterable[str]) -> list[LedgerRow]:
        """Claim the rows of arguments with these paths, and of the results that return them updated."""
        templates = set(map(template, paths))
        return claim(row for row in self.open if row.template in templates and row.role in ROW_OF_ARGUMENT)

    def rescaled_by(self, factor: Fraction) -> list[LedgerRow]:
        """Return the open rows of one side that differ from rows of the other by a factor in their dimensions."""
        gone, come = {row.shape for row in self.open if row.is_old}, {row.shape for row in self.open if row.is_new}
        pairs = [(a, b) for a in gone for b in come if _is_rescaled(a, b, factor)]
        old, new = {a for a, _ in pairs}, {b for _, b in pairs}
        return [row for row in self.open if (row.is_old and row.shape in old) or (row.is_new and row.shape in new)]

    def renamed(self) -> set[tuple[str, str]]:
        """Return the roles and shapes that lost as many arrays as they gained, whose arrays were only renamed."""
        grown, kept = defaultdict[tuple[str, str], int](int), set[tuple[str, str]]()
        for row in self.open:
            grown[row.role, row.shape] += row.arrays
            if not (row.is_old or row.is_new):
                kept.add((row.role, row.shape))
        return {key for key, arrays in grown.items() if not arrays} - kept

    def differences(self) -> list[LedgerRow]:
        """Return the rows that no cause has claimed, the largest first, without arrays that were only renamed."""
        renamed = self.renamed()
        rows = [row for row in self.open if row.bytes and (row.role, row.shape) not in renamed]
        return sorted(rows, key=lambda row: (-abs(row.bytes), row.template, row.function, row.role, row.shape))


def total(found: Iterable[LedgerRow | ChangeCause]) -> int:
    """Return the bytes by which these rows grew, or that these causes add."""
    return sum(one.bytes for one in found)


def claim(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return those of the rows that have no cause yet; they belong to the caller's cause from now on."""
    found = []
    for row in rows:
        if not row.claimed:
            row.claimed = True
            found.append(row)
    return found


def cause_of(
    kind: ChangeCauseKind, rows: Sequence[LedgerRow], names: tuple[str, ...] = (), before: str = "", after: str = ""
) -> ChangeCause:
    """Return the cause that has claimed these rows, with the largest of them as its example."""
    largest, arrays = max(rows, key=lambda row: abs(row.bytes)), sum(abs(row.arrays) for row in rows)
    return ChangeCause(kind, names, total(rows), before, after, arrays, shape=largest.shape, example=largest.path)


# Arrays of different paths may be one array before and after if they have at least this many dimensions. Arrays of two
# dimensions agree in one of them by chance, as in the demo's steps for TPU and GPU.
MIN_DIMENSIONS = 3
# A factor is a cause if this many paths or shapes changed by it, since one alone may be a coincidence. The microbatches
# of the demo change at least six.
MIN_PATHS = 2


def rescaled(ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause for each factor by which computed arrays changed and no argument did, as with microbatches."""
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
                pairs, key=lambda pair: (not pair[1].path.startswith(NO_PATH), pair[1].bytes - pair[0].bytes)
            )
            rows = claim(ledger.rescaled_by(factor))
            arrays = sum(row.arrays_after for row in rows)
            yield ChangeCause(
                ChangeCauseKind.SHAPE, (), total(rows), old.shape, new.shape, arrays, shape=new.shape, example=new.path
            )


def _alike(old: LedgerRow, new: LedgerRow) -> bool:
    """Return whether two rows of one role may be the same arrays before and after.

    They are if they have equal paths. Compilers name the stacks of a scan after any of its operations, so rows with
    different paths may be, too, if they have equally many arrays of MIN_DIMENSIONS or more.
    """
    same = old.arrays_before == new.arrays_after and len(old.size) >= MIN_DIMENSIONS
    return old.role == new.role and (old.template == new.template or same)


def _is_rescaled(old: str, new: str, factor: Fraction) -> bool:
    """Return whether two shapes differ, and all dimensions that differ are larger by `factor`."""
    a, b = size_of(old), size_of(new)
    if dtype_of(old) != dtype_of(new) or len(a) != len(b) or a == b:
        return False
    more, less = factor.as_integer_ratio()
    return all(x == y or x * more == y * less for x, y in zip(a, b, strict=True))


def _factor(old: str, new: str) -> Fraction | None:
    """Return the factor between two shapes if all dimensions that differ do so by one factor; else None."""
    a, b = size_of(old), size_of(new)
    if len(a) != len(b) or dtype_of(old) != dtype_of(new) or 0 in a:
        return None
    factors = {Fraction(y, x) for x, y in changed_dimensions(a, b)}
    return factors.pop() if len(factors) == 1 else None


def changed_dimensions(old: tuple[int, ...], new: tuple[int, ...]) -> set[tuple[int, int]]:
    """Return the dimensions that differ, before and after."""
    return {(a, b) for a, b in zip(old, new, strict=False) if a != b}
