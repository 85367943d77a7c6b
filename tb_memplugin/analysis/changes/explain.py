"""The causes of the change between two recordings of one program, from the facts of each."""

from __future__ import annotations

from collections.abc import Iterator

from tb_memplugin.analysis.changes.argument_causes import (
    added_and_removed,
    argument_pairs,
    donations,
    dtypes,
    shapes,
    shardings,
)
from tb_memplugin.analysis.changes.array_causes import fusions, layers, saved
from tb_memplugin.analysis.changes.ledger import Ledger
from tb_memplugin.analysis.changes.rescaled import rescaled
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind, Explanation
from tb_memplugin.model.memory_facts import MemoryFacts

MIN_SHARE = 0.02  # of the change of the peak; smaller causes are left out
MAX_CAUSES = 12
MAX_DIFFERENCES = 8
WITHOUT_BYTES = {
    ChangeCauseKind.DEVICES,
    ChangeCauseKind.NOT_DONATED,
    ChangeCauseKind.DONATED,
}  # the peak may be elsewhere


def explain_change(before: MemoryFacts, after: MemoryFacts) -> Explanation:
    """Return what changed the memory: causes in the order in which they claim arrays, so that they add up.

    What no cause claims is returned as differences. Nothing is returned where both sides have the same facts.
    """
    ledger = Ledger(before, after)
    found = list(_causes(before, after, ledger)) if before.kind.has_program else []
    grown = abs(after.peak_bytes - before.peak_bytes)
    least = max(int(MIN_SHARE * grown), before.floor_bytes, after.floor_bytes)
    if not found and before.kind.has_program:  # after any other change, a compiler fuses other operations
        found = list(fusions(before, after, ledger))
    found = [cause for cause in found if abs(cause.bytes) > least or cause.kind in WITHOUT_BYTES]
    differences = ledger.differences()
    rest = after.peak_bytes - before.peak_bytes - sum(cause.bytes for cause in found)
    large = [difference for difference in differences if abs(difference.bytes) > least]
    return Explanation(
        tuple(sorted(found, key=lambda cause: -cause.bytes)[:MAX_CAUSES]), tuple(large[:MAX_DIFFERENCES]), rest
    )


def _causes(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    pairs = argument_pairs(before, after)
    if before.devices != after.devices:
        yield ChangeCause(ChangeCauseKind.DEVICES, (), 0, str(before.devices), str(after.devices))
    yield from added_and_removed(before, after, ledger)
    yield from shardings(pairs, ledger)
    yield from dtypes(pairs, ledger)
    yield from shapes(pairs, ledger)
    yield from donations(pairs, ledger, after.peak_bytes - before.peak_bytes)
    yield from rescaled(ledger)
    yield from layers(pairs, ledger)
    yield from saved(before, after, ledger)
