"""Causes of the change between two recordings."""

from __future__ import annotations

from tb_memplugin.analysis.changes.explain import explain_change
from tb_memplugin.analysis.changes.facts import facts
from tb_memplugin.model.changes import ChangeCause
from tb_memplugin.model.recording import Recording


def causes_between(before: Recording, after: Recording) -> list[ChangeCause]:
    """Return the causes of the change between the peaks of two programs, the largest first; none for other kinds."""
    if not (before.kind.has_program and after.kind.has_program):
        return []
    return sorted(explain_change(facts(before), facts(after)).causes, key=lambda cause: -abs(cause.bytes))
