"""A baseline that was written, and the check against one, those above it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from tb_memplugin.model.memory_facts import MemoryFacts
from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked, Question
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.shared.baseline_check import (
    BaselineCheck,
    CheckedRecording,
    RecordedFacts,
    Status,
    UnmatchedRecording,
)
from tb_memplugin.views.shared.change_json import ExplanationJson, explanation_json
from tb_memplugin.views.shared.json_types import OmittedJson, ProblemJson

ORDER = {"above": 0, "below": 1, "within": 2}


class FiguresJson(TypedDict):
    """Figures of a recording."""

    peak_bytes: int
    reserved_bytes: int | None
    roles_bytes: Mapping[str, int]


class BaselineRecordingJson(FiguresJson):
    """A recording of a baseline."""

    id: str
    name: str
    kind: str
    memory: str


class BaselineFileJson(TypedDict):
    """The file of a baseline."""

    path: str
    bytes: int


class BaselineAnswerJson(AnswerJson):
    """The baseline that was written, without its arrays."""

    file: BaselineFileJson | None
    """Null without `--write`."""
    tolerance: str
    recordings: list[BaselineRecordingJson]
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


class BaselineCheckedJson(ExplanationJson):
    """A recording and its baseline."""

    id: str
    name: str
    name_before: str
    kind: str
    memory: str
    status: Status
    exceeded: list[str]
    """`peak` and `reserved`, as far as they are above the tolerance."""
    exceeded_roles: list[str]
    """Likewise roles, the one that grew the most first."""
    before: FiguresJson
    now: FiguresJson


class UnmatchedJson(TypedDict):
    """A recording without a baseline, or a baseline without a recording."""

    name: str
    kind: str
    memory: str
    peak_bytes: int
    reserved_bytes: int | None
    text: str


class CheckBaselineAnswerJson(AnswerJson):
    """The check of recordings against a baseline."""

    baseline: str
    tolerance: str
    checked: list[BaselineCheckedJson]
    added: list[UnmatchedJson]
    missing: list[UnmatchedJson]
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


def baseline_answer(
    file: BaselineFileJson | None,
    tolerance: str,
    found: Sequence[RecordedFacts],
    problems: list[ProblemJson],
    asked: Asked,
) -> BaselineAnswerJson:
    """Return what a baseline contains, the largest peak first, and the check against it."""
    check = [Question("check", {"path": asked.path, "baseline": file["path"]}, "what grew since")] if file else []
    answer: BaselineAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "file": file,
        "tolerance": tolerance,
        "recordings": [_recording(one) for one in sorted(found, key=lambda one: -one.facts.peak_bytes)],
        "problems": problems,
        "next": asked.next(*check),
    }
    return bounded(answer, asked.top)


def _recording(one: RecordedFacts) -> BaselineRecordingJson:
    facts = one.facts
    return {"id": one.id, "name": facts.name, "kind": facts.kind, "memory": facts.memory, **_figures(facts)}


def check_baseline_answer(found: BaselineCheck, asked: Asked) -> CheckBaselineAnswerJson:
    """Return the check with the questions that go deeper about what grew the most."""
    checked = sorted(found.checked, key=lambda one: (ORDER[one.status], one.before.peak_bytes - one.now.peak_bytes))
    answer: CheckBaselineAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "baseline": found.baseline,
        "tolerance": found.tolerance.text,
        "checked": [_checked(one) for one in checked],
        "added": [_unmatched(one) for one in found.added],
        "missing": [_unmatched(one) for one in found.missing],
        "problems": found.problems,
        "next": asked.next(*(_step(one, asked) for one in checked[:1] if one.status == "above")),
    }
    return bounded(answer, asked.top)


def _checked(one: CheckedRecording) -> BaselineCheckedJson:
    return {
        "id": one.id,
        "name": one.now.name,
        "name_before": one.before.name,
        "kind": one.now.kind.value,
        "memory": one.now.memory,
        "status": one.status,
        "exceeded": one.exceeded,
        "exceeded_roles": one.exceeded_roles,
        "before": _figures(one.before),
        "now": _figures(one.now),
        **explanation_json(one.explanation),
    }


def _figures(found: MemoryFacts) -> FiguresJson:
    return {
        "peak_bytes": found.peak_bytes,
        "reserved_bytes": found.reserved_bytes,
        "roles_bytes": dict(found.roles),
    }


def _unmatched(found: UnmatchedRecording) -> UnmatchedJson:
    return {
        "name": found.facts.name,
        "kind": found.facts.kind.value,
        "memory": found.facts.memory,
        "peak_bytes": found.facts.peak_bytes,
        "reserved_bytes": found.facts.reserved_bytes,
        "text": found.text,
    }


def _step(one: CheckedRecording, asked: Asked) -> Question:
    return asked.question("explain", f"what is live at the peak of {one.now.name}", one.id)
