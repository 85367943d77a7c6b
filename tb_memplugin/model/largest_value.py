"""The largest value of a knob for each choice of the others, from the candidates compiled for it, by step."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tb_memplugin.model.fit import Knob, Knobs, LargestValue, MemoryLine, Outcome, is_number

MAX_ERROR = 0.02  # of a line that describes the memory


def largest_value(target: str, knobs: Knobs, searched: str, found: Mapping[int, Outcome]) -> LargestValue:
    """Return the answer; `found` are outcomes by value, at least one. Without a search it has one of any value."""
    fitting = answers(found)
    largest = found[max(fitting)] if fitting else None
    clean = [value for value in fitting if not found[value].rematerialized]
    return LargestValue(
        target,
        knobs,
        searched,
        largest=largest,
        last=largest or found[min(found)],
        without_recomputation=max(clean) if searched and clean else None,
        recomputed=tuple(found[value] for value in sorted(fitting) if found[value].rematerialized),
        at_end=bool(searched and fitting and max(fitting) == max(found)),
        failed=tuple(found[value] for value in sorted(found) if found[value].error),
        line=memory_line({value: found[value] for value in clean}) if searched else None,
    )


def answers(found: Mapping[int, Outcome]) -> list[int]:
    """Return the values that fit.

    Where the compiler refused one at the end of its compilation, those that may be refused too are left out, if they
    are above the largest value that is certain, or without one above the smallest that was refused.
    """
    fitting = [value for value, outcome in found.items() if outcome.fits]
    refused = min((value for value, outcome in found.items() if outcome.refused), default=None)
    if refused is None:
        return fitting
    certain = max((value for value in fitting if not found[value].doubtful), default=refused)
    return [value for value in fitting if value <= certain]


def memory_line(found: Mapping[int, Outcome]) -> MemoryLine | None:
    """Return the line of reserved bytes against the value; None where memory does not follow one."""
    values = np.array(sorted(found), dtype=np.float64)
    if len(values) < 2:
        return None
    reserved = np.array([found[int(value)].reserved_bytes or 0 for value in values], dtype=np.float64)
    slope, fixed = np.polyfit(values, reserved, 1)
    if slope <= 0 or fixed < 0 or np.abs(fixed + slope * values - reserved).max() > MAX_ERROR * reserved.max():
        return None
    roles = {role for outcome in found.values() for role in outcome.roles}
    at_zero = {
        role: float(np.polyfit(values, [found[int(value)].roles.get(role, 0) for value in values], 1)[1])
        for role in sorted(roles)
    }
    fixed_roles = sorted(
        ((int(size), role) for role, size in at_zero.items() if size > MAX_ERROR * fixed), reverse=True
    )
    return MemoryLine(int(fixed), int(slope), int(values[-1]), {role: size for size, role in fixed_roles})


@dataclass(frozen=True)
class KnobChoice:
    """A target with values of all knobs but the searched one, and the changes that the program was compiled with."""

    target: str
    knobs: Knobs
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FitStep:
    """The candidates of a step whose largest value of one knob is searched; `searched` is empty without a search."""

    step: str
    searched: str
    outcomes: tuple[Outcome, ...]

    def choice(self, outcome: Outcome) -> KnobChoice:
        """Return what a candidate has in common with the others of its search."""
        candidate = outcome.candidate
        others = sorted((name, value) for name, value in candidate.knobs if name != self.searched)
        return KnobChoice(candidate.target, tuple(others), candidate.changes)

    def value(self, outcome: Outcome) -> Knob | None:
        """Return a candidate's value of the searched knob."""
        return dict(outcome.candidate.knobs).get(self.searched)

    def by_choice(self) -> dict[KnobChoice, list[Outcome]]:
        """Return the candidates of each choice, in the order of the searched knob."""
        found: dict[KnobChoice, list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(self.choice(outcome), []).append(outcome)
        return found


def fit_steps(outcomes: Iterable[Outcome]) -> list[FitStep]:
    """Return the candidates of each step and searched knob, ordered by target, choice and value."""
    every = list(outcomes)
    searches: dict[str, set[str]] = {outcome.candidate.step: set() for outcome in every}
    for outcome in every:
        if outcome.searched:
            searches[outcome.candidate.step].add(outcome.searched)
    steps: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in every:
        searched = outcome.searched or _only_search(outcome, searches[outcome.candidate.step])
        steps.setdefault((outcome.candidate.step, searched), []).append(outcome)
    found = [FitStep(step, searched, tuple(of_step)) for (step, searched), of_step in sorted(steps.items())]
    return [replace(one, outcomes=tuple(sorted(one.outcomes, key=partial(_order, one)))) for one in found]


def _only_search(outcome: Outcome, searches: set[str]) -> str:
    """Return the searched knob of a candidate that was compiled by itself: it is a point of its step's search."""
    searched = next(iter(searches), "")
    return searched if len(searches) == 1 and is_number(dict(outcome.candidate.knobs).get(searched)) else ""


def answer(step: FitStep, choice: KnobChoice, outcomes: Sequence[Outcome]) -> LargestValue:
    """Return the largest value of the searched knob for a choice; without a search, the candidate that fits."""
    values = ((step.value(outcome), outcome) for outcome in outcomes)
    found = {value: outcome for value, outcome in values if isinstance(value, int) and not isinstance(value, bool)}
    if step.searched and found:
        return largest_value(choice.target, choice.knobs, step.searched, found)
    return largest_value(choice.target, choice.knobs, "", dict(enumerate(outcomes)))


def _order(step: FitStep, outcome: Outcome) -> tuple[object, ...]:
    choice, value = step.choice(outcome), step.value(outcome)
    texts = [choice.target, *(f"{name} {knob}" for name, knob in choice.knobs), *choice.changes]
    number = float(value) if is_number(value) else float("-inf")
    return (_natural(" ".join(texts)), len(choice.changes), number, str(value), outcome.run)


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", text)]
