"""The check of recordings against a budget, of a fleet, or of a step that was compiled for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from tb_memplugin.model.fit import OutcomeJson
from tb_memplugin.views.answers.asked import SCHEMA_VERSION, AnswerJson, Asked
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.shared.budget import AboveBudgetJson, BudgetJson, NeedJson
from tb_memplugin.views.shared.fleet_budget import FleetBudgetJson
from tb_memplugin.views.shared.json_types import OmittedJson, ProblemJson


class CheckAnswerJson(AnswerJson):
    """The recordings that were checked, the largest need first, and those above the budget."""

    limit_bytes: int
    checked: list[NeedJson]
    broken: list[AboveBudgetJson]
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


class CheckFleetAnswerJson(AnswerJson, FleetBudgetJson):
    """The limits that the devices or programs of a fleet exceed."""


class CheckedCandidateJson(OutcomeJson):
    """A candidate that was compiled for the check."""

    explanation: list[str]
    """What takes the memory, where it does not fit."""


class CheckStepAnswerJson(AnswerJson):
    """The candidates that were compiled, one for each target."""

    checked: list[CheckedCandidateJson]
    omitted: NotRequired[OmittedJson]


def check_answer(found: BudgetJson, asked: Asked) -> CheckAnswerJson:
    """Return a check, and what to ask about the recording that is the most above the budget."""
    worst = found["broken"][:1]
    answer: CheckAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "limit_bytes": found["limit_bytes"],
        "checked": sorted(found["checked"], key=lambda one: -one["needed_bytes"]),
        "broken": [{**one, "explanation": list(filter(None, one["explanation"]))} for one in found["broken"]],
        "problems": found["problems"],
        "next": asked.next(
            *(asked.question("explain", "what takes the memory", one["id"]) for one in worst),
            *(asked.question("advice", "what would lower it", one["id"]) for one in worst),
        ),
    }
    return bounded(answer, asked.top)


def check_fleet_answer(found: FleetBudgetJson, asked: Asked) -> CheckFleetAnswerJson:
    """Return the check of a fleet."""
    answer: CheckFleetAnswerJson = {
        **found,
        "schema_version": SCHEMA_VERSION,
        "next": asked.next(asked.question("fleet", "the worst devices, and why they differ")),
    }
    return bounded(answer, asked.top)


def check_step_answer(found: Sequence[CheckedCandidateJson], asked: Asked) -> CheckStepAnswerJson:
    """Return the check of a step. Its programs are not kept, so nothing more can be asked about them."""
    answer: CheckStepAnswerJson = {"schema_version": SCHEMA_VERSION, "checked": list(found), "next": []}
    return bounded(answer, asked.top)
