"""The differences between the arrays of two peaks, each of which one cause may claim: so causes add up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tb_memplugin.analysis.changes.names import template
from tb_memplugin.model.changes import Difference
from tb_memplugin.model.memory_facts import ArrayFacts, MemoryFacts

LedgerKey = tuple[str, str, str, str]
ROW_OF_ARGUMENT = {"parameter", "optimizer state", "input", "state", "unknown", "output"}
COMPUTED = {"activation", "temporary", "gradient"}


@dataclass(slots=True)
class LedgerRow:
    """Arrays of one path, function, role and shape, before and after."""

    key: LedgerKey
    path: str
    function: str
    arrays_before: int = 0
    arrays_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    claimed: bool = False

    @property
    def template(self) -> str:
        return self.key[0]

    @property
    def role(self) -> str:
        return self.key[2]

    @property
    def shape(self) -> str:
        return self.key[3]

    @property
    def bytes(self) -> int:
        return self.bytes_after - self.bytes_before

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
    """Rows of both sides, by what they have in common. Paths are compared by their templates."""

    def __init__(self, before: MemoryFacts, after: MemoryFacts, renamed: Mapping[str, str] | None = None) -> None:
        """Make rows of the arrays at both peaks. `renamed`: paths of arguments after, by those before."""
        self._by_function = not after.kind.has_program
        self._renamed = renamed or {}
        self._rows: dict[LedgerKey, LedgerRow] = {}
        for array in before.arrays:
            row = self._row(array, self._renamed.get(array.path, array.path))
            row.arrays_before += array.arrays
            row.bytes_before += array.bytes
        for array in after.arrays:
            row = self._row(array, array.path)
            row.path = array.path
            row.arrays_after += array.arrays
            row.bytes_after += array.bytes

    def _row(self, array: ArrayFacts, path: str) -> LedgerRow:
        key = (template(path), array.function if self._by_function else "", array.role, array.shape)
        return self._rows.setdefault(key, LedgerRow(key, array.path, array.function))

    @property
    def open(self) -> list[LedgerRow]:
        """The rows that differ and have no cause yet."""
        return [row for row in self._rows.values() if not row.claimed and (row.bytes or row.arrays)]

    def claim(self, wanted: Callable[[LedgerRow], object]) -> list[LedgerRow]:
        """Give these open rows a cause, and return them."""
        found = [row for row in self.open if wanted(row)]
        for row in found:
            row.claimed = True
        return found

    def renamed(self) -> set[tuple[str, str]]:
        """Return roles and shapes of which as many arrays are gone as are new, such as with other names."""
        grown, kept = defaultdict[tuple[str, str], int](int), set[tuple[str, str]]()
        for row in self.open:
            grown[row.role, row.shape] += row.arrays
            if not (row.is_old or row.is_new):
                kept.add((row.role, row.shape))
        return {key for key, arrays in grown.items() if not arrays} - kept

    def differences(self) -> list[Difference]:
        """Return what no cause has claimed, the largest change first. Arrays with other names are left out."""
        renamed = self.renamed()
        rows = [row for row in self.open if row.bytes and (row.role, row.shape) not in renamed]
        return [_difference(row) for row in sorted(rows, key=lambda row: (-abs(row.bytes), row.key))]


def _difference(row: LedgerRow) -> Difference:
    counts = row.arrays_before, row.arrays_after
    return Difference(row.path, row.function, row.role, row.shape, *counts, row.bytes_before, row.bytes_after)


def total(rows: Iterable[LedgerRow]) -> int:
    """Return the bytes by which these rows grew."""
    return sum(row.bytes for row in rows)


def of_paths(paths: Iterable[str]) -> Callable[[LedgerRow], bool]:
    """Return a test for rows of arguments with these paths, and of the results that return them updated."""
    templates = set(map(template, paths))
    return lambda row: row.template in templates and row.role in ROW_OF_ARGUMENT
