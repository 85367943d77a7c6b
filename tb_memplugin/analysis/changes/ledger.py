"""The differences between the arrays of two peaks, each of which one cause may claim: so causes add up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tb_memplugin.analysis.changes.names import template
from tb_memplugin.model.changes import Difference
from tb_memplugin.model.memory_facts import ArrayFacts, MemoryFacts

LedgerKey = tuple[str, str, str, str]
ROW_OF_ARGUMENT = {"parameter", "optimizer state", "input", "state", "unknown", "output"}


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

    def __init__(self, before: MemoryFacts, after: MemoryFacts) -> None:
        self._by_function = not after.kind.has_program
        self._rows: dict[LedgerKey, LedgerRow] = {}
        for array in before.arrays:
            row = self._row(array)
            row.arrays_before += array.arrays
            row.bytes_before += array.bytes
        for array in after.arrays:
            row = self._row(array)
            row.path = array.path
            row.arrays_after += array.arrays
            row.bytes_after += array.bytes

    def _row(self, array: ArrayFacts) -> LedgerRow:
        key = (template(array.path), array.function if self._by_function else "", array.role, array.shape)
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

    def differences(self) -> list[Difference]:
        """Return what no cause has claimed, the largest change first."""
        rows = sorted(self.open, key=lambda row: (-abs(row.bytes), row.key))
        return [_difference(row) for row in rows if row.bytes]


def _difference(row: LedgerRow) -> Difference:
    counts = row.arrays_before, row.arrays_after
    return Difference(row.path, row.function, row.role, row.shape, *counts, row.bytes_before, row.bytes_after)


def total(rows: Iterable[LedgerRow]) -> int:
    """Return the bytes by which these rows grew."""
    return sum(row.bytes for row in rows)


def of_paths(templates: set[str]) -> Callable[[LedgerRow], bool]:
    """Return a test for rows of arguments with these templates, and of the results that return them updated."""
    return lambda row: row.template in templates and row.role in ROW_OF_ARGUMENT
