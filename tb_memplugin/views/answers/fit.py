"""The candidates of a step that were compiled: which fit, and the largest value of a knob that does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from tb_memplugin.model.fit import Knob, LargestValue, Outcome, PartJson, Tried
from tb_memplugin.model.fit_steps import answer as answer_of
from tb_memplugin.model.fit_steps import fit_steps
from tb_memplugin.views.answers.asked import MORE, SCHEMA_VERSION, AnswerJson, Asked, Question
from tb_memplugin.views.answers.bounded import bounded
from tb_memplugin.views.shared.json_types import AboutFile, OmittedJson, ProblemJson, problems_json
from tb_memplugin.views.terminal.fit import LargestJson, largest_json
from tb_memplugin.views.terminal.fit_try import TriedJson, tried_json


class CandidateLineJson(TypedDict):
    """A step with values of its knobs, compiled for a target; sizes are of one device."""

    step: str
    target: str
    knobs: dict[str, Knob]
    changes: list[str]
    fits: bool
    reserved_bytes: int | None
    peak_bytes: int | None
    limit_bytes: int | None
    rematerialized: int
    parts: list[PartJson]
    seconds: float
    run: str | None
    error: str | None
    """Why there is no program, or why the compiler refuses one that is within the limit."""
    caveats: list[str]
    omitted: NotRequired[OmittedJson]


class FitAnswerJson(AnswerJson):
    """The largest values that fit, and the candidates, those closest to their limit first."""

    largest: list[LargestJson]
    candidates: list[CandidateLineJson]
    tried: NotRequired[list[TriedJson]]
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


def fit(
    outcomes: Sequence[Outcome],
    asked: Asked,
    knobs: Mapping[str, str] | None = None,
    problems: Iterable[AboutFile] = (),
) -> FitAnswerJson:
    """Answer from the candidates that a logdir contains; with `knobs`, only from those with these values."""
    wanted = with_knobs(outcomes, knobs or {})
    return fit_answer(wanted, largest_values(wanted), asked, problems=problems)


def with_knobs(outcomes: Iterable[Outcome], knobs: Mapping[str, str]) -> list[Outcome]:
    """Return the candidates with these values of knobs; `target` is a knob too."""
    return [one for one in outcomes if knobs.items() <= _texts(one).items()]


def _texts(outcome: Outcome) -> dict[str, str]:
    return {name: str(value) for name, value in (("target", outcome.candidate.target), *outcome.candidate.knobs)}


def largest_values(outcomes: Iterable[Outcome]) -> list[LargestValue]:
    """Return the largest value that fits, for each step, target and choice of knobs."""
    steps = fit_steps(outcomes)
    return [answer_of(step, choice, some) for step in steps for choice, some in step.by_choice().items()]


def fit_answer(
    outcomes: Sequence[Outcome],
    found: Sequence[LargestValue],
    asked: Asked,
    tried: Sequence[Tried] | None = None,
    problems: Iterable[AboutFile] = (),
) -> FitAnswerJson:
    """Return the answers of a search, its candidates, and the advice that was tried."""
    answer: FitAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "largest": [largest_json(one) for one in found],
        "candidates": [_candidate(one) for one in sorted(outcomes, key=_distance)],
        "problems": problems_json(problems),
        "next": asked.next(*_questions(outcomes, found, asked)),
    }
    if tried is not None:
        answer["tried"] = [tried_json(one) for one in tried]
    return bounded(answer, asked.top)


def _distance(outcome: Outcome) -> int:
    """Return how far what is reserved is from the limit; those without a program come last."""
    if outcome.reserved_bytes is None:
        return 1 << 62
    return abs(outcome.reserved_bytes - (outcome.limit_bytes or 0))


def _candidate(outcome: Outcome) -> CandidateLineJson:
    candidate = outcome.candidate
    return {
        "step": candidate.step,
        "target": candidate.target,
        "knobs": dict(candidate.knobs),
        "changes": list(candidate.changes),
        "fits": outcome.fits,
        "reserved_bytes": outcome.reserved_bytes,
        "peak_bytes": outcome.peak_bytes,
        "limit_bytes": outcome.limit_bytes,
        "rematerialized": outcome.rematerialized,
        "parts": [{"name": part.name, "bytes": part.bytes} for part in outcome.parts],
        "seconds": round(outcome.seconds, 3),
        "run": outcome.run or None,
        "error": outcome.error or outcome.refused or None,
        "caveats": list(outcome.caveats),
    }


def _questions(outcomes: Sequence[Outcome], found: Sequence[LargestValue], asked: Asked) -> list[Question]:
    """Ask about the program of the first answer, where the logdir contains it."""
    kept = [one.last for one in found if one.last.run and one.last.reserved_bytes is not None]
    run = [{"path": f"{asked.path.rstrip('/')}/{one.run}"} for one in kept[:1]]
    steps = [Question("explain", path, "what is live at the peak of the answer") for path in run]
    if asked.top is not None and len(outcomes) > asked.top:
        steps.append(asked.question("fit", "more candidates", top=min(len(outcomes), MORE)))
    return steps
