"""The plan of a step: which of its candidates that fit is the fastest, and which are worth their memory.

Times are estimates. Candidates are compared by items per second: tokens where the batch of each has sequences, else
items of the batch, else steps.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tb_memplugin.model.accelerators import TPUS
from tb_memplugin.model.fit import MICROBATCHES, Knob, Knobs, Outcome, is_number

BATCH = re.compile(r"(?:\w{0,80}_)?(?:batch|batches|batch_?size|bsz?)(?:_per_\w{1,80})?", re.IGNORECASE)
NO_BATCH = re.compile(r"(?:^|_)(?:num|n|eval|test|valid\w*)_|micro", re.IGNORECASE)
OF_DEVICE = re.compile(r"per_(?:device|chip|core|replica|gpu)|local_", re.IGNORECASE)
RECOMPUTATION = re.compile(r"remat|checkpoint", re.IGNORECASE)
SECONDS_PER_HOUR = 3600
MILLION = 1e6


def is_batch(name: str) -> bool:
    """Return whether a knob is the size of a batch, of all devices or of each."""
    return bool(BATCH.fullmatch(name)) and not NO_BATCH.search(name) and name.lower() not in MICROBATCHES


def is_of_device(name: str) -> bool:
    """Return whether a batch is that of each device."""
    return bool(OF_DEVICE.search(name))


def batch_knob(names: Iterable[str]) -> str | None:
    """Return the knob that is the size of the batch; None without one."""
    return next(filter(is_batch, names), None)


def chip_of(target: str) -> str:
    return target.partition(":")[0]


def chips_of(target: str) -> int:
    """Return the number of chips of a target, such as 16 of v5e:4x4."""
    return prod(int(size) for size in target.partition(":")[2].split("x") if size.isdecimal())


def items_of(outcome: Outcome, name: str) -> float:
    """Return the value of a knob that counts items, on all devices together; 1 where it counts none."""
    value = dict(outcome.candidate.knobs).get(name)
    if not is_number(value) or value <= 0:
        return 1
    tpu = TPUS.get(chip_of(outcome.candidate.target))
    devices = chips_of(outcome.candidate.target) * (tpu.devices_per_chip if tpu is not None else 1)
    return value * devices if is_of_device(name) else value


@dataclass(frozen=True)
class Planned:
    """A candidate with its estimated rate, in items per second on all devices together; 0 where it is unknown."""

    outcome: Outcome
    rate: float
    cost: float | None = None  # of a million items; None without a price of the chip
    on_front: bool = False  # no candidate of the same target is as fast with less memory

    @property
    def target(self) -> str:
        return self.outcome.candidate.target

    @property
    def knobs(self) -> dict[str, Knob]:
        return dict(self.outcome.candidate.knobs)


@dataclass(frozen=True)
class Plan:
    """The candidates of a step: the fastest that fit, then those that do not fit, then those without a program."""

    item: str  # what the rates count: tokens, steps, or the knob of the batch
    candidates: tuple[Planned, ...]
    varied: tuple[str, ...]  # the knobs whose values differ

    @property
    def front(self) -> list[Planned]:
        return [one for one in self.candidates if one.on_front]

    @property
    def fastest(self) -> Planned | None:
        """The fastest candidate that fits, or without any estimated time the one that leaves the most memory."""
        return next((one for one in self.candidates if one.outcome.fits), None)

    @property
    def cheapest(self) -> Planned | None:
        """The candidate that fits with the lowest cost of an item; None without prices."""
        priced = [one for one in self.candidates if one.cost is not None and one.outcome.fits]
        return min(priced, key=lambda one: one.cost or 0.0, default=None)


def plan(outcomes: Sequence[Outcome], prices: Mapping[str, float] | None = None) -> Plan:
    """Return the plan of a step's candidates. `prices` are those of an hour of a chip, by its name."""
    some = [one for one in outcomes if not (one.error and one.candidate.changes)]  # changes that were not possible
    item = _item(some)
    rated = [Planned(one, _rate(one, item)) for one in some]
    front = _front(rated)
    known = [replace(one, cost=_cost(one, prices or {}), on_front=id(one.outcome) in front) for one in rated]
    return Plan(item, tuple(sorted(known, key=_order)), _varied(some))


def _item(outcomes: Sequence[Outcome]) -> str:
    compiled = [one for one in outcomes if one.reserved_bytes is not None]
    if compiled and all(one.tokens for one in compiled):
        return "tokens"
    names = {batch_knob(dict(one.candidate.knobs)) or one.searched for one in compiled}
    return names.pop() or "steps" if len(names) == 1 else "steps"


def _rate(outcome: Outcome, item: str) -> float:
    if not outcome.step_seconds:
        return 0.0
    items = outcome.tokens if item == "tokens" else 1 if item == "steps" else items_of(outcome, item)
    return items / outcome.step_seconds


def _cost(one: Planned, prices: Mapping[str, float]) -> float | None:
    """Return the cost of a million items, from the price of an hour of the chip."""
    price = prices.get(chip_of(one.target))
    if price is None or not one.rate:
        return None
    return price * chips_of(one.target) / SECONDS_PER_HOUR / one.rate * MILLION


def _front(rated: Sequence[Planned]) -> set[int]:
    """Return the ids of the outcomes that are the fastest with their memory or less, for each target."""
    found, least = set[int](), dict[str, int]()
    fitting = [one for one in rated if one.outcome.fits and one.rate]
    for one in sorted(fitting, key=_order):
        reserved = one.outcome.reserved_bytes or 0
        if reserved < least.get(one.target, reserved + 1):
            least[one.target] = reserved
            found.add(id(one.outcome))
    return found


def _order(one: Planned) -> tuple[int, float, int, int, str]:
    outcome = one.outcome
    kind = 0 if outcome.fits else 1 if outcome.reserved_bytes is not None else 2
    return kind, -one.rate, outcome.reserved_bytes or 0, len(outcome.candidate.changes), str(outcome.candidate)


def _varied(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    names = dict.fromkeys(name for one in outcomes for name, _ in one.candidate.knobs)
    values = {name: {dict(one.candidate.knobs).get(name) for one in outcomes} for name in names}
    return tuple(name for name in names if len(values[name]) > 1)


@dataclass(frozen=True)
class Price:
    """What a value of a knob costs in time, and what it allows, against another value of it."""

    knob: str
    value: Knob  # of the fastest candidate
    other: Knob
    best: Planned
    instead: Planned  # the fastest with the other value that fits; else the one that lacks the least memory
    same: tuple[Planned, Planned] | None  # both with the same batch, best and other

    @property
    def gain(self) -> float:
        """The ratio of rates; 0 where the other value does not fit."""
        return self.best.rate / self.instead.rate if self.instead.outcome.fits and self.instead.rate else 0.0


def knob_prices(found: Plan, best: Planned) -> list[Price]:
    """Return what each knob of a candidate costs against its other values, where all other choices are the same."""
    prices = []
    size = batch_knob(best.knobs) or best.outcome.searched
    for name in found.varied:
        if name == size:
            continue
        free = (size, *(one for one in best.knobs if one.lower() in MICROBATCHES))
        of_choice = [
            one
            for one in found.candidates
            if _others(one, name, free) == _others(best, name, free) and one.outcome.reserved_bytes is not None
        ]
        for other in dict.fromkeys(one.knobs.get(name) for one in of_choice):
            if other is None or other == best.knobs.get(name):
                continue
            instead = next(one for one in of_choice if one.knobs.get(name) == other)
            prices.append(Price(name, best.knobs[name], other, best, instead, _same(of_choice, name, best, other)))
    return prices


def _others(one: Planned, name: str, free: Sequence[str] = ()) -> tuple[str, tuple[str, ...], Knobs]:
    knobs = tuple(sorted((key, value) for key, value in one.knobs.items() if key not in (name, *free)))
    return one.target, one.outcome.candidate.changes, knobs


def _same(some: Sequence[Planned], name: str, best: Planned, other: Knob) -> tuple[Planned, Planned] | None:
    """Return two candidates with the two values that are the same in all else, with the largest batch there is."""
    own = {_others(one, name): one for one in some if one.knobs.get(name) == best.knobs[name]}
    others = [one for one in some if one.knobs.get(name) == other]
    pairs = [(own[_others(one, name)], one) for one in others if _others(one, name) in own]
    return max(pairs, key=lambda pair: pair[0].outcome.reserved_bytes or 0, default=None)
