"""The check against a baseline, those above it first."""

from __future__ import annotations

from typing import NotRequired

from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked, Question
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.shared.baseline_check import BaselineCheckedJson, BaselineCheckJson, UnmatchedJson
from tb_memplugin.views.shared.json_types import OmittedJson, ProblemJson

ORDER = {"above": 0, "below": 1, "within": 2}


class BaselineAnswerJson(AnswerJson):
    """The check of recordings against a baseline."""

    baseline: str
    tolerance: str
    checked: list[BaselineCheckedJson]
    added: list[UnmatchedJson]
    missing: list[UnmatchedJson]
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


def baseline_answer(found: BaselineCheckJson, asked: Asked) -> BaselineAnswerJson:
    """Return the check with the questions that go deeper about what grew the most."""
    checked = sorted(found["checked"], key=lambda one: (ORDER[one["status"]], -_grown(one)))
    answer: BaselineAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "baseline": found["baseline"],
        "tolerance": found["tolerance"],
        "checked": checked,
        "added": found["added"],
        "missing": found["missing"],
        "problems": found["problems"],
        "next": asked.next(*(_step(one, asked) for one in checked[:1] if one["status"] == "above")),
    }
    return bounded(answer, asked.top)


def _grown(one: BaselineCheckedJson) -> int:
    return one["now"]["peak_bytes"] - one["before"]["peak_bytes"]


def _step(one: BaselineCheckedJson, asked: Asked) -> Question:
    return asked.question("explain", f"what is live at the peak of {one['name']}", one["id"])
