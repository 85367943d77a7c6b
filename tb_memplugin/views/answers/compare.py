"""What changed between the recordings of two paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked, Question, selector
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.page.compare import (
    ChangedJson,
    ChangeKind,
    ComparedSideJson,
    Pair,
    WaterfallStepJson,
)
from tb_memplugin.views.shared.change_json import NamedCauseJson
from tb_memplugin.views.shared.json_types import CaveatJson, OmittedJson, ProblemJson
from tb_memplugin.views.terminal.compared_pairs import ExplainedComparisonJson, compared_pairs


class ChangedSiteJson(TypedDict):
    """A site whose live bytes differ; the rows select it in `buffers --row`."""

    change: ChangeKind
    site: str
    source: str
    shape: str
    shape_before: str
    row_a: int | None
    row_b: int | None
    bytes_a: int
    bytes_b: int
    allocations_a: int
    allocations_b: int


class SideAnswerJson(TypedDict):
    """A recording at the compared position."""

    recording: str
    """Its id."""
    position: int
    time_ns: int | None
    bytes: int
    """Live at the position."""
    peak_bytes: int
    reserved_bytes: int | None
    capacity_bytes: int | None
    caveats: list[CaveatJson]


class ComparisonAnswerJson(TypedDict):
    """The changes between a pair of recordings, largest first."""

    verdict: str
    headline: str
    a: SideAnswerJson
    b: SideAnswerJson
    by: str
    steps: list[WaterfallStepJson]
    changes: dict[ChangeKind, ChangedJson]
    entries: list[ChangedSiteJson]
    entries_total: int
    causes: list[NamedCauseJson]
    omitted: NotRequired[OmittedJson]


class CompareAnswerJson(AnswerJson):
    """One comparison for each pair of recordings, those that grew the most first."""

    comparisons: list[ComparisonAnswerJson]
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


def compare(
    pairs: Sequence[Pair],
    asked: Asked,
    other: str,
    by: str = "role",
    at_a: str | None = None,
    at_b: str | None = None,
) -> CompareAnswerJson:
    """Compare pairs of recordings of the path of `asked` and of `other`, at their peaks or at other moments.

    InputError where a moment is none of its recording.
    """
    return compare_answer(*compared_pairs(pairs, at_a, at_b, by), asked, other, by)


def compare_answer(
    comparisons: Sequence[ExplainedComparisonJson], problems: list[ProblemJson], asked: Asked, other: str, by: str
) -> CompareAnswerJson:
    """Return comparisons, the largest change first, and the pairs that cannot be compared."""
    found = sorted(comparisons, key=lambda one: -abs(one["b"]["bytes"] - one["a"]["bytes"]))
    answer: CompareAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "comparisons": [_comparison(one) for one in found],
        "problems": problems,
        "next": asked.next(*_questions(found, asked, other, by)),
    }
    return bounded(answer, asked.top)


def _comparison(found: ExplainedComparisonJson) -> ComparisonAnswerJson:
    return {
        "verdict": found["verdict"],
        "headline": found["headline"],
        "a": _side(found["a"]),
        "b": _side(found["b"]),
        "by": found["by"],
        "steps": sorted(found["steps"], key=lambda step: -abs(step["bytes_b"] - step["bytes_a"])),
        "changes": found["changes"],
        "entries": [
            {
                "change": one["change"],
                "site": one["site"],
                "source": one["source"],
                "shape": one["shape"],
                "shape_before": one["shape_before"],
                "row_a": one["row_a"],
                "row_b": one["row_b"],
                "bytes_a": one["bytes_a"],
                "bytes_b": one["bytes_b"],
                "allocations_a": one["allocations_a"],
                "allocations_b": one["allocations_b"],
            }
            for one in found["entries"]
            if one["change"] != "same"
        ],
        "entries_total": found["entries_total"] - found["changes"]["same"]["entries"],
        "causes": [
            {"kind": cause["kind"], "names": cause["names"], "bytes": cause["bytes"], "text": cause["text"]}
            for cause in found["causes"]
        ],
    }


def _side(side: ComparedSideJson) -> SideAnswerJson:
    recording = side["recording"]
    return {
        "recording": recording["id"],
        "position": side["position"],
        "time_ns": side["time_ns"],
        "bytes": side["bytes"],
        "peak_bytes": recording["peak_bytes"],
        "reserved_bytes": recording["reserved_bytes"],
        "capacity_bytes": recording["capacity_bytes"],
        "caveats": recording["caveats"],
    }


def _questions(found: Sequence[ExplainedComparisonJson], asked: Asked, other: str, by: str) -> list[Question]:
    if not found:
        return []
    b = found[0]["b"]["recording"]["id"]
    finer = {"role": "model", "model": "source"}.get(by, "role")
    arguments = {"a": asked.path, "b": other, "recording": _common(found[0]), "by": finer}
    return [
        Question("explain", {"path": other, "recording": selector(b)}, "what is live in B"),
        Question("compare", {key: text for key, text in arguments.items() if text}, f"the same change by {finer}"),
    ]


def _common(found: ExplainedComparisonJson) -> str:
    """Return a text that both ids contain: the memory and the title of the pair; empty where they differ."""
    title = found["a"]["recording"]["title"]
    return selector(title) if title in found["b"]["recording"]["id"] else ""
