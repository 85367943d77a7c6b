"""The candidates of a step that were compiled: which fit, and the largest value of a knob that does."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import accelerator_name
from tb_memplugin.model.fit import Knob, LargestValue, Outcome, OutcomeJson, PartJson, Tried
from tb_memplugin.model.largest_value import answer as answer_of
from tb_memplugin.model.largest_value import fit_steps
from tb_memplugin.questions.asking.asked import MORE, SCHEMA_VERSION, AnswerJson, Asked, Question, bounded
from tb_memplugin.questions.asking.json_types import AboutFile, OmittedJson, ProblemJson, problems_json
from tb_memplugin.questions.compare.budget import NeedJson
from tb_memplugin.questions.fit.tried import TriedJson, tried_json
from tb_memplugin.questions.records import record


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
    """The reason why there is no program, or why the compiler refuses one that is within the limit."""
    caveats: list[str]
    omitted: NotRequired[OmittedJson]


class ChipFitJson(TypedDict):
    """A chip, and whether a recording fits its memory; sizes are of one device."""

    target: str
    fits: bool
    limit_bytes: int
    """The bytes that programs may reserve."""
    left_bytes: int
    """The limit minus the needed bytes; negative where the recording does not fit."""


class LargestJson(TypedDict):
    """The largest value of a knob that fits, for a target and a choice of the other knobs."""

    target: str
    knobs: dict[str, Knob]
    vary: str | None
    value: Knob | None
    value_without_recomputation: int | None
    fits: bool
    run: str | None
    reserved_bytes: int | None
    limit_bytes: int | None
    fixed_bytes: int | None
    bytes_per_item: int | None
    caveats: list[str]


class FitAnswerJson(AnswerJson):
    """The largest values that fit, and the candidates, those closest to their limit first; or chips for a recording."""

    largest: list[LargestJson]
    candidates: list[CandidateLineJson]
    tried: NotRequired[list[TriedJson]]
    recording: NotRequired[NeedJson]
    """For a recording: the memory that it needs."""
    chips: NotRequired[list[ChipFitJson]]
    """For a recording: the chips with room for it, then the others, each by size of their memory."""
    caveats: NotRequired[list[str]]
    """The limitations of the figures of `chips`."""
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


def candidates(outcomes: Iterable[Outcome], targets: Sequence[str], knobs: Mapping[str, str]) -> list[Outcome]:
    """Return the candidates for one of the targets, with these values of knobs; a chip stands for all of its sizes."""
    return [one for one in outcomes if _is_for(one, targets) and knobs.items() <= _texts(one).items()]


def _is_for(outcome: Outcome, targets: Sequence[str]) -> bool:
    own = outcome.candidate.target
    named = {":".join((accelerator_name(chip), *size)) for chip, *size in (text.split(":") for text in targets)}
    return not targets or own in named or own.partition(":")[0] in named


def _texts(outcome: Outcome) -> dict[str, str]:
    return {name: str(value) for name, value in outcome.candidate.knobs}


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
    programs: Container[str] | None = None,
) -> FitAnswerJson:
    """Return the answers of a search, its candidates, and the advice that was tried.

    Further questions are about `programs`, the runs that contain their program (None: all).
    """
    answer: FitAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "largest": [_largest(one) for one in found],
        "candidates": [_candidate(one) for one in sorted(outcomes, key=_distance)],
        "problems": problems_json(problems),
        "next": asked.next(*_questions(outcomes, found, asked, programs)),
    }
    if tried is not None:
        answer["tried"] = [tried_json(one) for one in tried]
    return bounded(answer, asked.top)


def _largest(one: LargestValue) -> LargestJson:
    """Return an answer for JSON; the sizes are those of the candidate `run`."""
    line = one.line
    return record(
        LargestJson,
        one,
        one.last,
        knobs=dict(one.knobs),
        vary=one.searched or None,
        value_without_recomputation=one.without_recomputation,
        fits=one.largest is not None,
        run=one.last.run or None,
        fixed_bytes=line.fixed_bytes if line else None,
        bytes_per_item=line.bytes_per_item if line else None,
    )


def _distance(outcome: Outcome) -> int:
    """Return the distance of the reserved bytes from the limit, to sort by; candidates without a program come last."""
    if outcome.reserved_bytes is None:
        return 1 << 62
    return abs(outcome.reserved_bytes - (outcome.limit_bytes or 0))


def _candidate(outcome: Outcome) -> CandidateLineJson:
    return record(
        CandidateLineJson,
        outcome,
        outcome.candidate,
        knobs=dict(outcome.candidate.knobs),
        seconds=round(outcome.seconds, 3),
        run=outcome.run or None,
        error=outcome.error or outcome.refused or None,
    )


def no_candidates(path: str, problems: Sequence[AboutFile]) -> InputError:
    """Return the error for a logdir without the wanted candidates: the first problem of its records, if any."""
    if problems:
        return InputError("No such candidates", problems[0].file, problems[0].text)
    remedy = "`tb-memplugin fit FILE.py:FUNCTION --to LOGDIR` compiles some; without knobs, all are listed"
    return InputError("No such candidates", path, remedy)


def _questions(
    outcomes: Sequence[Outcome], found: Sequence[LargestValue], asked: Asked, programs: Container[str] | None
) -> list[Question]:
    """Return questions about the program of the first answer that has one in the logdir."""
    runs = [one.last.run for one in found if one.last.run and one.last.reserved_bytes is not None]
    kept = [run for run in runs if programs is None or run in programs]
    run = [{"path": f"{asked.path.rstrip('/')}/{name}"} for name in kept[:1]]
    steps = [Question("explain", path, "what is live at the peak of the answer") for path in run]
    if asked.top is not None and len(outcomes) > asked.top:
        steps.append(asked.question("fit", "more candidates", top=min(len(outcomes), MORE)))
    return steps


class CheckedCandidateJson(OutcomeJson):
    """A candidate that was compiled for the check."""

    explanation: list[str]
    """The largest parts of the memory, if it does not fit."""


class CheckStepAnswerJson(AnswerJson):
    """The candidates that were compiled, one for each target."""

    checked: list[CheckedCandidateJson]
    omitted: NotRequired[OmittedJson]


def check_step_answer(found: Sequence[CheckedCandidateJson], asked: Asked) -> CheckStepAnswerJson:
    """Return the check of a step. Its programs are not kept, so nothing more can be asked about them."""
    answer: CheckStepAnswerJson = {"schema_version": SCHEMA_VERSION, "checked": list(found), "next": []}
    return bounded(answer, asked.top)
