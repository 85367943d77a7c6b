"""The changes between the recordings of two paths, pair by pair, for the command and its JSON."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, NotRequired, Protocol, TypedDict

from tb_memplugin.analysis.compare.causes import causes_between
from tb_memplugin.analysis.isolate import Failed, failure
from tb_memplugin.errors import InputError
from tb_memplugin.model.changes import ChangeCause
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import AnswerJson, Asked, OmittedJson, Question, selector
from tb_memplugin.questions.asking.json_types import AboutFile, CaveatJson, ProblemJson, problems_json
from tb_memplugin.questions.asking.selectors import MAX_IDS_LISTED, no_recordings, position_of
from tb_memplugin.questions.compare.causes import NamedCauseJson, cause_text
from tb_memplugin.questions.compare.comparison import (
    ChangedSiteJson,
    CompareBy,
    ComparedJson,
    ComparedSideJson,
    ComparisonJson,
    Pair,
    compared,
    pairs,
)
from tb_memplugin.questions.records import record


class Listed(Protocol):
    """The recordings of a path, and the problems of its files."""

    @property
    def recordings(self) -> Sequence[Recording]: ...
    @property
    def problems(self) -> Iterable[AboutFile]: ...


def matched_pairs(paths: Sequence[str], listed: Sequence[Listed], wanted: str) -> list[Pair]:
    """Return the pairs of the recordings of two paths whose ids contain a text. InputError where there is none."""
    sides = []
    for path, every in zip(paths, listed, strict=True):
        if not every.recordings:
            raise no_recordings(path, every.problems)
        chosen = [recording for recording in every.recordings if wanted in recording.id]
        if not chosen:
            ids = ", ".join(recording.id for recording in every.recordings[:MAX_IDS_LISTED])
            raise InputError("No such recording", wanted, f"give a part of an id of {path}: {ids}")
        sides.append(chosen)
    if matched := pairs(sides[0], sides[1]):
        return matched
    ids = "; ".join(", ".join(r.id for r in side[:MAX_IDS_LISTED]) for side in sides)
    raise InputError("No recording is in both", " and ".join(paths), f"give a text that ids of both contain: {ids}")


class ExplainedComparison(NamedTuple):
    """A comparison, and the causes of the change between the peaks of two programs, the largest first."""

    comparison: ComparisonJson
    causes: Sequence[ChangeCause]


def compared_pairs(
    matched: Sequence[Pair], at_a: str | None, at_b: str | None, by: str
) -> tuple[list[ExplainedComparison], list[ProblemJson]]:
    """Return the comparison of each pair, and a problem for each pair that cannot be compared.

    InputError where a moment is outside its recording.
    """
    found, failed = list[ExplainedComparison](), list[Failed]()
    for pair in matched:
        try:
            moments = [position_of(r, at) if at else None for r, at in zip(pair, (at_a, at_b), strict=True)]
            causes = [] if at_a or at_b else causes_between(*pair)
            found.append(ExplainedComparison(compared(*pair, moments[0], moments[1], CompareBy(by)), causes))
        except InputError:
            raise
        except Exception as error:
            failed.append(failure(pair[1], error))
    return found, problems_json(failed)


class SideAnswerJson(TypedDict):
    """A recording at the compared position."""

    recording: str
    """The recording's id."""
    position: int
    """The compared position."""
    time_ns: int | None
    """The time of the position."""
    bytes: int
    """Live bytes there."""
    peak_bytes: int
    """The recording's peak."""
    reserved_bytes: int | None
    """The largest number of bytes that the program requests from the device, or that the allocator reserves."""
    capacity_bytes: int | None
    """The size of the memory, or the part of it that a program may use."""
    caveats: list[CaveatJson]
    """The caveats of the recording."""


class ComparisonAnswerJson(ComparedJson):
    """The changes between a pair of recordings, largest first."""

    a: SideAnswerJson
    """The recording before."""
    b: SideAnswerJson
    """The recording after."""
    entries: list[ChangedSiteJson]
    """The changes, largest first."""
    causes: list[NamedCauseJson]
    """The causes of the change between the peaks of two programs, the largest first; none for other recordings and
    other moments."""
    omitted: NotRequired[OmittedJson]


class CompareAnswerJson(AnswerJson):
    """One comparison for each pair of recordings, those that grew the most first."""

    comparisons: list[ComparisonAnswerJson]
    """One per pair of recordings, the largest change first."""
    problems: list[ProblemJson]
    """The pairs that cannot be compared."""


def compare_answer(
    comparisons: Sequence[ExplainedComparison], problems: list[ProblemJson], asked: Asked, other: str, by: str
) -> CompareAnswerJson:
    """Return comparisons, the largest change first, and the pairs that cannot be compared."""
    found = sorted(comparisons, key=lambda one: -abs(one.comparison["b"]["bytes"] - one.comparison["a"]["bytes"]))
    listed, further = [_comparison(one) for one in found], _questions(found, asked, other, by)
    return asked.answer(CompareAnswerJson, comparisons=listed, problems=problems, next=further)


def _comparison(explained: ExplainedComparison) -> ComparisonAnswerJson:
    """Return a comparison without the sites that are as before, and with each side's id in place of its summary."""
    found = explained.comparison
    return record(
        ComparisonAnswerJson,
        found,
        a=_side(found["a"]),
        b=_side(found["b"]),
        steps=sorted(found["steps"], key=lambda step: -abs(step["bytes_b"] - step["bytes_a"])),
        entries=[record(ChangedSiteJson, one) for one in found["entries"] if one["change"] != "same"],
        entries_total=found["entries_total"] - found["changes"]["same"]["entries"],
        causes=[record(NamedCauseJson, cause, text=cause_text(cause)) for cause in explained.causes],
    )


def _side(side: ComparedSideJson) -> SideAnswerJson:
    return record(SideAnswerJson, side, side["recording"], recording=side["recording"]["id"])


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
