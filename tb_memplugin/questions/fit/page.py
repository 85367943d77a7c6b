"""The candidates of a fit: reserved bytes, the peak by role, and the largest value that fits for each choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from tb_memplugin.model.fit import Knob, LargestValue, Outcome, PartJson
from tb_memplugin.model.fit_plan import Planned, plan
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.largest_value import FitStep, KnobChoice, answer, fit_steps
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import RUNS
from tb_memplugin.questions.asking.json_types import ProblemJson
from tb_memplugin.questions.asking.source import Runs
from tb_memplugin.questions.fit.plan import sentences as sentences_of_plan
from tb_memplugin.questions.fit.words import change_text, sentences, verdict
from tb_memplugin.questions.records import record, records
from tb_memplugin.sizes import agree, bytes_text, counted

MAX_IN_HEADLINE = 3  # targets
MAX_PARTS = 20


class RoleBytesJson(TypedDict):
    """The bytes of one role."""

    role: int
    bytes: int


class FitChoiceJson(TypedDict):
    """Target, knobs and changes that the candidates of one search have in common."""

    target: str
    knobs: dict[str, float | str | bool]
    """All knobs except the searched one."""
    changes: list[str]
    """Changes made to the program before it was compiled, to try advice."""
    change: str
    """The changes in words; empty without any."""


class FitCandidateJson(FitChoiceJson):
    """A step with values of its knobs for a target, and the outcome of compiling it, in bytes per device."""

    choice: int
    """Index into the step's `choices`."""
    value: float | str | bool | None
    """Value of the searched knob."""
    run: str
    fits: bool
    reserved_bytes: int | None
    peak_bytes: int | None
    capacity_bytes: int | None
    limit_bytes: int | None
    """The budget, else the capacity; null where the host's memory is the limit."""
    rematerialized: int
    """Instructions that the compiler runs twice by itself."""
    rematerialized_flops: float
    """Their share of the program's floating-point operations."""
    step_seconds: float
    """The estimated time of one run of the program; 0 where the target's speed is unknown."""
    utilization: float
    """The share of the chip's published FLOPs per second (MFU) that its matrix products reach in that time."""
    bound_seconds: dict[str, float]
    """The estimated seconds of the step by what binds them, such as `matrix products` or `memory`."""
    work_seconds: dict[str, float]
    """The estimated seconds that `recomputation`, `collectives` and `copies` take of it, the most first."""
    items_per_second: float
    """The estimated `item`s of the step that all devices together take in a second; 0 where it is unknown."""
    on_front: bool
    """It fits, and no candidate of its target is as fast with less memory."""
    roles: list[RoleBytesJson]
    """Bytes at the peak, largest first."""
    parts: list[PartJson]
    seconds: float
    error: str | None
    """The reason why there is no program, or why the compiler refuses one that is within the limit."""
    traceback: str | None
    versions: dict[str, str]
    caveats: list[str]


class FitLargestJson(FitChoiceJson):
    """The largest value of the searched knob that fits; without a search, whether the candidate fits."""

    candidate: int | None
    """Index into the step's `candidates`; null where none fits."""
    at_end: bool
    """True where it is the last value that was compiled: a larger one may fit."""
    without_recomputation: int | None
    """As `candidate`, for the largest value for which the compiler runs no instruction twice."""
    sentences: list[str]
    """Sentences: how memory rises with the knob, what the compiler recomputes, and what failed."""


class FitStepJson(TypedDict):
    """The candidates of a step, ordered by target, choice and value."""

    step: str
    searched: str
    """The searched knob; empty without a search."""
    headline: str
    item: str
    """What rates count: `tokens`, `steps`, or the knob of the batch."""
    plan: list[str]
    """Sentences: the fastest candidate that fits, what binds it, and what its choices cost; empty without rates."""
    candidates: list[FitCandidateJson]
    choices: list[FitLargestJson]


class FitJson(TypedDict):
    """All candidates of a logdir, by step, and records that cannot be read."""

    steps: list[FitStepJson]
    problems: list[ProblemJson]


@endpoint("fit", RUNS, report=EACH_CHOICE)
def fit(runs: Runs) -> FitJson:
    """Return the candidates of all fits in the logdir, from their records alone."""
    found = runs.fit()
    return {
        "steps": [_step(step) for step in fit_steps(found.outcomes)],
        "problems": records(ProblemJson, found.problems),
    }


def _step(step: FitStep) -> FitStepJson:
    choices = step.by_choice()
    ordered = [outcome for of_choice in choices.values() for outcome in of_choice]
    numbers = {choice: number for number, choice in enumerate(choices)}
    index = {id(outcome): number for number, outcome in enumerate(ordered)}
    answers = {choice: answer(step, choice, of_choice) for choice, of_choice in choices.items()}
    by_value = {choice: {step.value(one): index[id(one)] for one in some} for choice, some in choices.items()}
    planned = plan(step.outcomes)
    rates = {id(one.outcome): one for one in planned.candidates}
    is_timed = sum(one.rate > 0 for one in planned.candidates) > 1
    return {
        "step": step.step,
        "searched": step.searched,
        "headline": headline(step, answers),
        "item": planned.item,
        "plan": list(sentences_of_plan(planned)) if is_timed else [],
        "candidates": [
            _candidate(step, outcome, numbers[step.choice(outcome)], rates.get(id(outcome))) for outcome in ordered
        ],
        "choices": [
            {
                **_choice(choice),
                "candidate": None if one.largest is None else index[id(one.largest)],
                "at_end": one.at_end,
                "without_recomputation": None
                if one.without_recomputation is None
                else by_value[choice].get(one.without_recomputation),
                "sentences": list(sentences(one)),
            }
            for choice, one in answers.items()
        ],
    }


def headline(step: FitStep, answers: Mapping[KnobChoice, LargestValue]) -> str:
    """Return the answer in a sentence for each target, up to MAX_IN_HEADLINE."""
    targets = list(dict.fromkeys(choice.target for choice in answers))
    texts = [_sentence(step, target, answers) for target in targets[:MAX_IN_HEADLINE]]
    more = len(targets) - MAX_IN_HEADLINE
    return " ".join([*texts, *([f"{counted(more, 'more target')} below."] if more > 0 else [])])


def _sentence(step: FitStep, target: str, answers: Mapping[KnobChoice, LargestValue]) -> str:
    fitting = [
        (choice, one.largest) for choice, one in answers.items() if choice.target == target and one.largest is not None
    ]
    if not fitting:
        tried = [outcome for outcome in step.outcomes if outcome.candidate.target == target]
        return f"{verdict(tried[0])}." if len(tried) == 1 else f"None of {len(tried):,} candidates fits on {target}."
    if not step.searched:
        every = sum(choice.target == target for choice in answers)
        fits = agree(len(fitting), "fits", "fit")
        return f"{len(fitting):,} of {counted(every, 'candidate')} {fits} on {target}."
    # Among equal values, the fewest changes come first, then the most memory left.
    fitting.sort(key=lambda pair: (-_number(step.value(pair[1])), len(pair[0].changes), pair[1].reserved_bytes or 0))
    choice, best = next((pair for pair in fitting if not pair[0].changes), fitting[0])
    text = (
        f"{step.value(best)} is the largest {step.searched} that fits on {target}{_named(choice)}: "
        f"it reserves {bytes_text(best.reserved_bytes or 0, digits=4)}{_left(best)}."
    )
    if answers[choice].at_end:
        text += f" No larger {step.searched} was compiled, so a larger one may fit."
    changed, larger = fitting[0]
    if _number(step.value(larger)) > _number(step.value(best)):
        end = ", the end of the range" if answers[changed].at_end else ""
        text += f" With a change{_named(changed)} it is {step.value(larger)}{end}."
    return text


def _named(choice: KnobChoice) -> str:
    others = [*(f"{name}={value}" for name, value in choice.knobs), *map(change_text, choice.changes)]
    return f" ({', '.join(others)})" if others else ""


def _number(value: Knob | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _left(outcome: Outcome) -> str:
    if outcome.limit_bytes is None or outcome.left_bytes is None:
        return ""
    return f" of {bytes_text(outcome.limit_bytes, digits=4)}, and {bytes_text(outcome.left_bytes)} is left"


def _choice(choice: KnobChoice) -> FitChoiceJson:
    return record(FitChoiceJson, choice, knobs=dict(choice.knobs), change=", ".join(map(change_text, choice.changes)))


def _candidate(step: FitStep, outcome: Outcome, number: int, planned: Planned | None) -> FitCandidateJson:
    return record(
        FitCandidateJson,
        outcome,
        **_choice(step.choice(outcome)),
        choice=number,
        value=step.value(outcome),
        bound_seconds=dict(outcome.bound_seconds),
        work_seconds=dict(outcome.work_seconds),
        items_per_second=planned.rate if planned is not None else 0.0,
        on_front=planned is not None and planned.on_front,
        roles=_roles(outcome),
        parts=records(PartJson, outcome.parts[:MAX_PARTS]),
        error=outcome.error or outcome.refused or None,
        traceback=outcome.traceback or None,
        versions=dict(outcome.versions),
    )


def _roles(outcome: Outcome) -> list[RoleBytesJson]:
    """Return the bytes at the peak by role. Roles that this version does not know become UNKNOWN."""
    found: dict[Role, int] = {}
    for name, size in outcome.roles.items():
        role = Role.__members__.get(name.upper().replace(" ", "_").replace("-", "_"), Role.UNKNOWN)
        found[role] = found.get(role, 0) + size
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return [{"role": int(role), "bytes": size} for role, size in ordered]
