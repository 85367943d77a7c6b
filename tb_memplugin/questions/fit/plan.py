"""The plan of a step: the fastest candidate that fits, those worth their memory, and what each choice costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from tb_memplugin.model.fit import Knob, remat_of
from tb_memplugin.model.fit_plan import Plan, Planned, Price, batch_knob, knob_prices
from tb_memplugin.questions.asking.asked import STDIN, AnswerJson, Asked, Question
from tb_memplugin.questions.asking.json_types import AboutFile, ProblemJson, problems_json
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.fit.words import (
    ESTIMATED_TIMES,
    change_text,
    filled,
    left_text,
    rows_of,
    size_text,
    work_text,
)
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text, counted, percent_text, seconds_text, two_digits

MAX_SHOWN = 12  # rows of the table
MAX_CHANGES = 4
NOTABLE = 1.05  # a smaller ratio of two estimated times is none
DIGITS = 2  # of an estimate


class PlannedJson(TypedDict):
    """A candidate of a plan; sizes are in bytes of one device, and times are estimated, with two digits."""

    target: str
    """The target, such as `v5e:4x4`."""
    knobs: dict[str, Knob]
    """The values of the knobs, by name."""
    changes: list[str]
    """The changes to the program that `plan` made by itself; empty for the user's own."""
    fits: bool
    """True if the reserved bytes are within the limit."""
    on_front: bool
    """True if it fits, and no candidate of the target is as fast with less memory."""
    reserved_bytes: int | None
    """The bytes that the program requests from a device; null where it could not be compiled."""
    limit_bytes: int | None
    """The budget, else the capacity."""
    step_seconds: float | None
    """The estimated time of a step; null where the target's speed is unknown."""
    items_per_second: float | None
    """The estimated `item`s that all devices together take in a second."""
    utilization: float | None
    """The share of the chip's published FLOPs per second (MFU) that its matrix products reach in that time."""
    bound_shares: dict[str, float]
    """The shares of that time by what binds it, such as `matrix products`, `memory` or `other devices`."""
    work_shares: dict[str, float]
    """The shares of that time that `recomputation`, `collectives` and `copies` take."""
    cost_per_million: float | None
    """The cost of a million items; null without `--price`."""
    run: str | None
    """The name of its run in the logdir."""
    error: str | None
    """The reason why there is no program, or why the compiler refuses one that is within the limit."""


class PlanAnswerJson(AnswerJson):
    """The fastest configuration of a step that fits, and those that are worth their memory."""

    item: str
    """What the rates count: `tokens`, `steps`, or the knob of the batch."""
    fastest: PlannedJson | None
    """The fastest candidate that fits, of all targets; null where none fits."""
    cheapest: PlannedJson | None
    """With `--price`: the candidate that fits with the lowest cost of an item."""
    front: list[PlannedJson]
    """For each target, the candidates that fit and are the fastest with their memory or less, the fastest first."""
    candidates: list[PlannedJson]
    """All candidates that were compiled: those that fit, the fastest first, then those that do not fit."""
    sentences: list[str]
    """What binds the fastest, and what each of its choices costs and allows."""
    problems: list[ProblemJson]
    """Of a logdir: the records that cannot be read."""


def plan_answer(found: Plan, asked: Asked, problems: Iterable[AboutFile] = ()) -> PlanAnswerJson:
    """Return the answer of a plan."""
    fastest, cheapest = found.fastest, found.cheapest
    return asked.answer(
        PlanAnswerJson,
        item=found.item,
        fastest=None if fastest is None else _planned(fastest),
        cheapest=None if cheapest is None else _planned(cheapest),
        front=list(map(_planned, found.front)),
        candidates=list(map(_planned, found.candidates)),
        sentences=list(sentences(found)),
        problems=problems_json(problems),
        next=[_next(fastest, asked)],
    )


def _next(fastest: Planned | None, asked: Asked) -> Question | None:
    if fastest is None or not fastest.outcome.run or asked.path == STDIN:  # its program was not kept
        return None
    path = f"{asked.path.rstrip('/')}/{fastest.outcome.run}"
    return Question("explain", {"path": path}, "what is live at the peak of the fastest")


def _planned(one: Planned) -> PlannedJson:
    outcome = one.outcome
    return record(
        PlannedJson,
        one,
        outcome,
        outcome.candidate,
        knobs=one.knobs,
        step_seconds=_rounded(outcome.step_seconds),
        items_per_second=_rounded(one.rate),
        utilization=_rounded(outcome.utilization),
        bound_shares={name: _rounded(share) or 0.0 for name, share in _shares(one)},
        work_shares={
            name: _rounded(seconds / outcome.step_seconds) or 0.0 for name, seconds in outcome.work_seconds.items()
        },
        cost_per_million=_rounded(one.cost),
        run=outcome.run or None,
        error=outcome.error or outcome.refused or None,
    )


def _rounded(number: float | None) -> float | None:
    return float(f"{number:.{DIGITS}g}") if number else None


def _shares(one: Planned) -> list[tuple[str, float]]:
    """Return the shares of a step's time by what binds them, largest first."""
    bound = one.outcome.bound_seconds
    total = sum(bound.values())
    return sorted(((name, seconds / total) for name, seconds in bound.items()), key=lambda pair: -pair[1])


def lines(found: Plan) -> Iterator[str]:
    """Yield the table of the front, and sentences."""
    shown = found.front or list(found.candidates)
    if shown:
        yield from align(_rows(found, shown[:MAX_SHOWN]), 0)
        if len(shown) > MAX_SHOWN:
            yield f"and {len(shown) - MAX_SHOWN:,} more: see --json, or the Fit tab"
        yield ""
    yield from sentences(found)


def _rows(found: Plan, shown: Sequence[Planned]) -> list[list[str]]:
    outcomes = [one.outcome for one in shown]
    return rows_of(
        ["target", *(one.target for one in shown)],
        *([name, *(str(one.knobs.get(name, "")) for one in shown)] for name in found.varied),
        *filled("with", (", ".join(map(change_text, each.candidate.changes)) for each in outcomes)),
        ["reserved", *(size_text(each.reserved_bytes) for each in outcomes)],
        ["left", *map(left_text, outcomes)],
        ["step (estimated)", *(seconds_text(each.step_seconds) for each in outcomes)],
        *filled("spent on", map(work_text, outcomes)),
        [f"{found.item}/s", *(two_digits(one.rate) if one.rate else "" for one in shown)],
        *filled(f"cost of a million ({found.item})", (_cost_text(one.cost) for one in shown)),
    )


def _cost_text(cost: float | None) -> str:
    return "" if cost is None else f"{float(f'{cost:.2g}'):,g}"


def sentences(found: Plan) -> Iterator[str]:
    """Yield what is the fastest, what binds it, what its choices cost and allow, and what was compiled."""
    fastest = found.fastest
    if fastest is None:
        yield from _none_fits(found)
    elif fastest.rate:
        yield f"The fastest that fits, as estimated: {_name(found, fastest)}, {two_digits(fastest.rate)} {found.item}/s"
        yield from _binding(fastest)
        yield from (_price_text(found, price) for price in knob_prices(found, fastest))
        yield from _changes(found, fastest)
        yield from _code(found)
    else:
        yield f"The speed of {fastest.target} is not known: {_name(found, fastest)} leaves the most memory"
    cheapest = found.cheapest
    if cheapest is not None:
        cost = f"{_cost_text(cheapest.cost)} for a million ({found.item})"
        yield f"The cheapest, as estimated: {_name(found, cheapest)}, {cost}"
    fitting = sum(one.outcome.fits for one in found.candidates)
    count = counted(len(found.candidates), "candidate")
    yield f"{count} compiled, {fitting:,} fit, {len(found.front):,} are the fastest with their memory or less"
    if any(one.rate for one in found.candidates):
        yield ESTIMATED_TIMES


def _none_fits(found: Plan) -> Iterator[str]:
    compiled = [one for one in found.candidates if one.outcome.left_bytes is not None]
    if not compiled:
        errors = dict.fromkeys(one.outcome.error for one in found.candidates if one.outcome.error)
        yield f"Nothing could be compiled: {next(iter(errors), 'no candidates')}"
        return
    nearest = max(compiled, key=lambda one: one.outcome.left_bytes or 0)
    if nearest.outcome.refused:
        reason = f"refused by the compiler: {nearest.outcome.refused}"
        yield f"Nothing fits; {_name(found, nearest)} is the nearest, and {reason}"
    else:
        lacking = size_text(-(nearest.outcome.left_bytes or 0))
        yield f"Nothing fits; {_name(found, nearest)} is the nearest, {lacking} too large"


def _binding(one: Planned) -> Iterator[str]:
    shares = ", ".join(f"{name} {percent_text(share, 1.0)}" for name, share in _shares(one) if share >= 0.01)
    if shares:
        mfu = percent_text(one.outcome.utilization, 1.0)
        yield f"Its time is bound by: {shares} (estimated); it reaches {mfu} of the chip's FLOPs per second (MFU)"


def _changes(found: Plan, fastest: Planned) -> Iterator[str]:
    """Yield what each change of the fastest, compiled with these knobs, costs and saves against no change."""
    same = [one for one in found.candidates if (one.target, one.knobs) == (fastest.target, fastest.knobs)]
    before = next((one.outcome for one in same if not one.outcome.candidate.changes), None)
    for one in [one for one in same if one.outcome.candidate.changes][:MAX_CHANGES] if before is not None else []:
        after = one.outcome
        if before is None or after.reserved_bytes is None or before.reserved_bytes is None:
            continue
        text = ", ".join(map(change_text, after.candidate.changes))
        time = _ratio_text(after.step_seconds, before.step_seconds)
        memory = _less_text(after.reserved_bytes, before.reserved_bytes)
        unfit = "" if before.fits else "; without it, it does not fit"
        yield f"With a change ({text}), as estimated: a step takes {time}{memory}{unfit}"


def _code(found: Plan) -> Iterator[str]:
    """Yield how a user writes the policy of the fastest candidate of the front that has one."""
    policies = filter(None, (remat_of(one.outcome.candidate.changes) for one in found.front))
    if (remat := next(policies, None)) is not None:
        of = "a layer, the body of a scan, or without these the loss"
        yield f"To {remat.label}: jax.checkpoint(f, policy=jax.checkpoint_policies.{remat.code}), where f is {of}"


def _name(found: Plan, one: Planned) -> str:
    """Name a candidate by its target, the knobs that differ, the batch, and changes."""
    shown = [*found.varied, batch_knob(one.knobs)]
    knobs = [f"{name}={value}" for name, value in one.knobs.items() if name in shown]
    return ", ".join([" ".join([one.target, *knobs[:1]]), *knobs[1:], *map(change_text, one.outcome.candidate.changes)])


def _price_text(found: Plan, price: Price) -> str:
    """Say what a choice costs at the same batch, and what it allows, such as a larger batch."""
    parts = []
    if price.same is not None:
        own, other = (one.outcome for one in price.same)
        less = _less_text(own.reserved_bytes or 0, other.reserved_bytes or 0)
        parts.append(f"a step takes {_ratio_text(own.step_seconds, other.step_seconds)}{less}")
    instead = price.instead
    if not instead.outcome.fits:
        left = instead.outcome.left_bytes
        lacking = f", {size_text(-left)} too large" if left is not None and left < 0 else ""
        parts.append(f"{price.knob}={price.other} does not fit{lacking}")
    elif price.gain and _free_text(price):
        parts.append(f"it allows {_free_text(price)}: {_times(price.gain)} as many {found.item}/s")
    return f"{price.knob}={price.value} in place of {price.other}, as estimated: {'; '.join(parts) or 'no difference'}"


def _ratio_text(own: float, other: float) -> str:
    ratio = own / other if other else 0.0
    if not ratio:
        return "an unknown time"
    if 1 / NOTABLE < ratio < NOTABLE:
        return "about as long"
    change = percent_text(abs(ratio - 1), 1.0)
    return f"{change} {'longer' if ratio > 1 else 'less time'}" if ratio < 2 else f"{_times(ratio)} as long"


def _times(ratio: float) -> str:
    return "about as" if 1 / NOTABLE < ratio < NOTABLE else f"{ratio:.2g} times"


def _less_text(own: int, other: int) -> str:
    if own == other:
        return ""
    return f" and {bytes_text(abs(other - own))} {'less' if own < other else 'more'} memory"


def _free_text(price: Price) -> str:
    """Return the batch or the microbatches where the two differ, such as `batch=256 in place of 64`."""
    own, other = price.best.knobs, price.instead.knobs
    return ", ".join(
        f"{name}={value} in place of {other.get(name)}"
        for name, value in own.items()
        if name != price.knob and other.get(name) != value
    )
