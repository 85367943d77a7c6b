"""Changes between the recordings of two paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict, cast

from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked, Question, selector
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.answers.compared_pairs import ExplainedComparison, compared_pairs
from tb_memplugin.views.page.compare import (
    ChangedJson,
    ChangedSiteJson,
    ChangeKind,
    ComparedEntryJson,
    ComparedSideJson,
    ComparisonJson,
    Pair,
    WaterfallStepJson,
)
from tb_memplugin.views.shared.change_json import NamedCauseJson, named_cause_json
from tb_memplugin.views.shared.json_types import CaveatJson, OmittedJson, ProblemJson


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
    comparisons: Sequence[ExplainedComparison], problems: list[ProblemJson], asked: Asked, other: str, by: str
) -> CompareAnswerJson:
    """Return comparisons, the largest change first, and the pairs that cannot be compared."""
    found = sorted(comparisons, key=lambda one: -abs(one.comparison["b"]["bytes"] - one.comparison["a"]["bytes"]))
    answer: CompareAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "comparisons": [_comparison(one) for one in found],
        "problems": problems,
        "next": asked.next(*_questions(found, asked, other, by)),
    }
    return bounded(answer, asked.top)


def _comparison(explained: ExplainedComparison) -> ComparisonAnswerJson:
    found = explained.comparison
    return {
        "verdict": found["verdict"],
        "headline": found["headline"],
        "a": _side(found["a"]),
        "b": _side(found["b"]),
        "by": found["by"],
        "steps": sorted(found["steps"], key=lambda step: -abs(step["bytes_b"] - step["bytes_a"])),
        "changes": found["changes"],
        "entries": [_site(one) for one in found["entries"] if one["change"] != "same"],
        "entries_total": found["entries_total"] - found["changes"]["same"]["entries"],
        "causes": [named_cause_json(cause) for cause in explained.causes],
    }


def _site(one: ComparedEntryJson) -> ChangedSiteJson:
    every = dict(one)
    return cast(ChangedSiteJson, {key: every[key] for key in ChangedSiteJson.__annotations__})


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


def _questions(found: Sequence[ExplainedComparison], asked: Asked, other: str, by: str) -> list[Question]:
    if not found:
        return []
    b = found[0].comparison["b"]["recording"]["id"]
    finer = {"role": "model", "model": "source"}.get(by, "role")
    arguments = {"a": asked.path, "b": other, "recording": _common(found[0].comparison), "by": finer}
    return [
        Question("explain", {"path": other, "recording": selector(b)}, "what is live in B"),
        Question("compare", {key: text for key, text in arguments.items() if text}, f"the same change by {finer}"),
    ]


def _common(found: ComparisonJson) -> str:
    """Return a text that both ids contain: the memory and the title of the pair; empty where they differ."""
    title = found["a"]["recording"]["title"]
    return selector(title) if title in found["b"]["recording"]["id"] else ""
