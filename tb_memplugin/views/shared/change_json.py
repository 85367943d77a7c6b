"""The causes of a change between two recordings, for JSON."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.analysis.changes.explain import explain_change
from tb_memplugin.analysis.changes.facts import facts
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind, Difference, Explanation
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.shared.change_text import cause_text, difference_text


class NamedCauseJson(TypedDict):
    """A cause of a change, and what it adds to the peak."""

    kind: str
    names: list[str]
    bytes: int
    text: str


class CauseJson(NamedCauseJson):
    """A cause of a change with all that its sentence says."""

    before: str
    after: str
    arrays: int
    layers: int
    shape: str
    example: str
    role: str
    dimension: int | None


class DifferenceJson(TypedDict):
    """Arrays at the peak whose change has no known cause."""

    path: str
    function: str
    role: str
    shape: str
    arrays_before: int
    arrays_after: int
    bytes_before: int
    bytes_after: int
    text: str


class ExplanationJson(TypedDict):
    """Causes of a change, and what none of them explains."""

    causes: list[CauseJson]
    differences: list[DifferenceJson]
    unexplained_bytes: int


def causes_between(before: Recording, after: Recording) -> list[CauseJson]:
    """Return the causes of the change between the peaks of two programs, the largest first; none for other kinds."""
    if not (before.kind.has_program and after.kind.has_program):
        return []
    found = explain_change(facts(before), facts(after)).causes
    return [cause_json(cause) for cause in sorted(found, key=lambda cause: -abs(cause.bytes))]


def explanation_json(explanation: Explanation) -> ExplanationJson:
    """Return an explanation for JSON."""
    return {
        "causes": [cause_json(cause) for cause in explanation.causes],
        "differences": [difference_json(found) for found in explanation.differences],
        "unexplained_bytes": explanation.unexplained_bytes,
    }


def cause_json(cause: ChangeCause) -> CauseJson:
    return {
        "kind": cause.kind.value,
        "names": list(cause.names),
        "bytes": cause.bytes,
        "before": cause.before,
        "after": cause.after,
        "arrays": cause.arrays,
        "layers": cause.layers,
        "shape": cause.shape,
        "example": cause.example,
        "role": cause.role,
        "dimension": cause.dimension,
        "text": cause_text(cause),
    }


def difference_json(found: Difference) -> DifferenceJson:
    return {
        "path": found.path,
        "function": found.function,
        "role": found.role,
        "shape": found.shape,
        "arrays_before": found.arrays_before,
        "arrays_after": found.arrays_after,
        "bytes_before": found.bytes_before,
        "bytes_after": found.bytes_after,
        "text": difference_text(found),
    }


def cause_of(found: CauseJson) -> ChangeCause:
    """Return the cause that JSON describes, for its sentence in another form."""
    fields = {key: value for key, value in found.items() if key not in ("text", "kind", "names")}
    return ChangeCause(ChangeCauseKind(found["kind"]), tuple(found["names"]), **fields)  # type: ignore[arg-type]
