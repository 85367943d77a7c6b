"""The causes of a change between two recordings, for JSON."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.model.changes import ChangeCause, Difference, Explanation
from tb_memplugin.views.shared.change_text import cause_text, difference_text


class NamedCauseJson(TypedDict):
    """A cause of a change, and what it adds to the peak."""

    kind: str
    names: list[str]
    bytes: int
    text: str


class CauseJson(NamedCauseJson):
    """A cause of a change, with the parts of its sentence."""

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
    """Causes of a change, and the differences that remain."""

    causes: list[CauseJson]
    differences: list[DifferenceJson]
    unexplained_bytes: int


def explanation_json(explanation: Explanation) -> ExplanationJson:
    """Return an explanation for JSON."""
    return {
        "causes": [cause_json(cause) for cause in explanation.causes],
        "differences": [difference_json(found) for found in explanation.differences],
        "unexplained_bytes": explanation.unexplained_bytes,
    }


def named_cause_json(cause: ChangeCause) -> NamedCauseJson:
    """Return a cause in short."""
    return {"kind": cause.kind.value, "names": list(cause.names), "bytes": cause.bytes, "text": cause_text(cause)}


def cause_json(cause: ChangeCause) -> CauseJson:
    """Return a cause with the parts of its sentence."""
    return {
        **named_cause_json(cause),
        "before": cause.before,
        "after": cause.after,
        "arrays": cause.arrays,
        "layers": cause.layers,
        "shape": cause.shape,
        "example": cause.example,
        "role": cause.role,
        "dimension": cause.dimension,
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
