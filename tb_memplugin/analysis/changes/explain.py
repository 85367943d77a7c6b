"""The causes of the change between two recordings of one program, from the facts of each."""

from __future__ import annotations

from collections.abc import Iterator

from tb_memplugin.analysis.changes.argument_causes import added_and_removed, donations, dtypes, shapes, shardings
from tb_memplugin.analysis.changes.argument_pairs import PairedArguments, paired_arguments
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
OF_ARGUMENTS = {
    ChangeCauseKind.ARGUMENT_ADDED,
    ChangeCauseKind.ARGUMENT_REMOVED,
    ChangeCauseKind.SHARDING,
    ChangeCauseKind.DTYPE,
    ChangeCauseKind.SHAPE,
}


def explain_change(before: MemoryFacts, after: MemoryFacts) -> Explanation:
    """Return what changed the memory: causes in the order in which they claim arrays, so that they add up.

    What no cause claims is returned as differences. Nothing is returned where both sides have the same facts.
    """
    paired = paired_arguments(before, after)
    ledger = Ledger(before, after, {old.path: new.path for old, new in paired.pairs.values()})
    found = list(_causes(before, after, paired, ledger)) if before.kind.has_program else []
    grown = abs(after.peak_bytes - before.peak_bytes)
    least = max(int(MIN_SHARE * grown), before.floor_bytes, after.floor_bytes)
    if not found and before.kind.has_program:  # after any other change, a compiler fuses other operations
        found = list(fusions(before, after, ledger))
    large = [cause for cause in found if abs(cause.bytes) > least or cause.kind in WITHOUT_BYTES]
    # After any change of the arguments, a compiler may choose another plan.
    found = large or [cause for cause in found if grown and cause.kind in OF_ARGUMENTS]
    differences = ledger.differences()
    rest = after.peak_bytes - before.peak_bytes - sum(cause.bytes for cause in found)
    unexplained = [difference for difference in differences if abs(difference.bytes) > least]
    return Explanation(
        tuple(sorted(found, key=lambda cause: -cause.bytes)[:MAX_CAUSES]), tuple(unexplained[:MAX_DIFFERENCES]), rest
    )


def _causes(before: MemoryFacts, after: MemoryFacts, paired: PairedArguments, ledger: Ledger) -> Iterator[ChangeCause]:
    pairs, devices = paired.pairs, (before.devices, after.devices)
    if before.devices != after.devices:
        yield ChangeCause(ChangeCauseKind.DEVICES, (), 0, str(before.devices), str(after.devices))
    yield from added_and_removed(paired, ledger)
    yield from shardings(pairs, ledger)
    yield from dtypes(pairs, ledger)
    yield from shapes(pairs, ledger, devices)
    yield from donations(pairs, ledger, after.peak_bytes - before.peak_bytes)
    yield from rescaled(ledger)
    yield from layers(pairs, before, after, ledger)
    yield from saved(before, after, ledger)
