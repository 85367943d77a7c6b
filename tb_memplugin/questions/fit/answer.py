"""The candidates of a step that were compiled: which fit, and the largest value of a knob that does."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NotRequired, Protocol, TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import accelerator_name
from tb_memplugin.model.fit import (
    CandidateJson,
    Knob,
    LargestValue,
    Outcome,
    OutcomeJson,
    Tried,
    outcome_json,
    parse_value,
)
from tb_memplugin.model.largest_value import answer as answer_of
from tb_memplugin.model.largest_value import fit_steps
from tb_memplugin.questions.asking.asked import MORE, AnswerJson, Asked, OmittedJson, Question
from tb_memplugin.questions.asking.json_types import AboutFile, ProblemJson, problems_json
from tb_memplugin.questions.compare.budget import NeedJson
from tb_memplugin.questions.fit.tried import SearchJson, TriedJson, tried_json
from tb_memplugin.questions.records import record


class CompiledCandidateJson(CandidateJson):
    """A candidate, without what only its own run has."""

    omitted: NotRequired[OmittedJson]


class ChipFitJson(TypedDict):
    """A chip, and whether a recording fits its memory; sizes are of one device."""

    target: str
    """The chip, such as `v5e` or `h100`, as `--on` takes it."""
    fits: bool
    """True if the memory that the recording needs is within the limit."""
    limit_bytes: int
    """The bytes that programs may reserve of a device; of PyTorch, what CUDA leaves of the GPU."""
    left_bytes: int
    """The limit minus the need; negative where it does not fit."""


class LargestJson(SearchJson):
    """The largest value of a knob that fits, for a target and a choice of the other knobs."""

    value: Knob | None
    """Its largest value that fits; null if none does."""
    value_without_recomputation: int | None
    """The largest value before the compiler recomputes."""
    fits: bool
    """True if any value fits."""
    run: str | None
    """The run of the candidate that is the answer, or of the smallest one where nothing fits."""
    reserved_bytes: int | None
    """The reserved bytes of that candidate."""
    limit_bytes: int | None
    """The limit of that candidate."""
    fixed_bytes: int | None
    """The reserved bytes of the line through the compiled values at 0; null where memory does not follow a line."""
    bytes_per_item: int | None
    """The bytes that each item adds."""
    caveats: list[str]
    """Facts that the figures leave out."""


class FitAnswerJson(AnswerJson):
    """The largest values that fit, and the candidates, those closest to their limit first; or chips for a recording."""

    largest: list[LargestJson]
    """One for each target and choice of knobs."""
    candidates: list[CompiledCandidateJson]
    """The candidates that were compiled, or that the logdir contains; those closest to their limit first."""
    tried: NotRequired[list[TriedJson]]
    """With `--try`: advice about the answers, carried out."""
    recording: NotRequired[NeedJson]
    """Of an answer about a recording: the memory that it needs; `largest` and `candidates` are empty then."""
    chips: NotRequired[list[ChipFitJson]]
    """Those with room for the recording first, the smallest memory first."""
    caveats: NotRequired[list[str]]
    """Facts that the figures of `chips` leave out."""
    problems: list[ProblemJson]
    """Of a logdir: the records that cannot be read."""


class Records(Protocol):
    """The outcomes of candidates in a logdir, and the records that cannot be read."""

    @property
    def outcomes(self) -> Sequence[Outcome]: ...
    @property
    def problems(self) -> Sequence[AboutFile]: ...


def candidates(records: Records, targets: Sequence[str], knobs: Mapping[str, str], path: str) -> list[Outcome]:
    """Return the candidates for one of the targets, with these values of knobs; a chip stands for all of its sizes.

    InputError where there is none with these values, or where one may be in a record that cannot be read.
    """
    found = [one for one in records.outcomes if _is_for(one, targets)]
    wanted = {(name, parse_value(text)) for name, text in knobs.items()}
    found = [one for one in found if wanted <= set(one.candidate.knobs)]
    if found or not (knobs or records.problems):
        return found
    if records.problems:
        raise InputError("No such candidates", records.problems[0].file, records.problems[0].text)
    remedy = "`tb-memplugin fit FILE.py:FUNCTION --to LOGDIR` compiles some; without knobs, all are listed"
    raise InputError("No such candidates", path, remedy)


def planned_candidates(records: Records, targets: Sequence[str], knobs: Mapping[str, str], path: str) -> list[Outcome]:
    """Return the candidates of the step that has the most of them; InputError where there is none."""
    found = candidates(records, targets, knobs, path)
    if not found:
        remedy = "`tb-memplugin plan FILE.py:FUNCTION --to LOGDIR` compiles some"
        raise InputError("No candidates", path, remedy)
    steps = [one.candidate.step for one in found]
    step = max(dict.fromkeys(steps), key=steps.count)
    return [one for one in found if one.candidate.step == step]


def _is_for(outcome: Outcome, targets: Sequence[str]) -> bool:
    own = outcome.candidate.target
    named = {":".join((accelerator_name(chip), *size)) for chip, *size in (text.split(":") for text in targets)}
    return not targets or own in named or own.partition(":")[0] in named


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
    return asked.answer(
        FitAnswerJson,
        largest=[_largest(one) for one in found],
        candidates=[_candidate(one) for one in sorted(outcomes, key=_distance)],
        problems=problems_json(problems),
        next=_questions(outcomes, found, asked, programs),
        **({} if tried is None else {"tried": [tried_json(one) for one in tried]}),
    )


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


def _candidate(outcome: Outcome) -> CompiledCandidateJson:
    error = outcome.error or outcome.refused or None
    return record(CompiledCandidateJson, outcome_json(outcome), error=error)


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
    """The first lines of `explain` where it does not fit."""


class CheckStepAnswerJson(AnswerJson):
    """The candidates that were compiled, one for each target."""

    checked: list[CheckedCandidateJson]
    """One for each target."""
