"""Candidates of a fit: each combination of targets and choices, with a search for the largest value of one knob."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from tb_memplugin.fit.candidate import Candidate, Knob, Outcome
from tb_memplugin.fit.compiling import compile_and_read
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.fit.search import Search
from tb_memplugin.fit.targets import Target

NO_LIMIT = 1 << 62  # of targets whose limit is the host's memory


@dataclass(frozen=True)
class Sweep:
    """A step on targets, with its knobs: fixed, chosen from, and one that is searched."""

    step: str
    targets: Sequence[Target]
    fixed: tuple[tuple[str, Knob], ...]
    varied: Sequence[Varied]
    folder: Path
    budget: int | None = None
    done: Callable[[Outcome], None] = lambda outcome: None
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self, jobs: int) -> list[LargestValue]:
        """Compile all candidates, so many at a time, and return the largest value for each combination."""
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(self._one, self._combinations()))

    def _combinations(self) -> Iterator[tuple[Target, tuple[tuple[str, Knob], ...]]]:
        chosen = [[(one.name, value) for value in one.values] for one in self.varied if not one.searched]
        for target, *choices in product(self.targets, *chosen):
            yield target, (*self.fixed, *choices)

    def _one(self, combination: tuple[Target, tuple[tuple[str, Knob], ...]]) -> LargestValue:
        target, knobs = combination
        limit = self.budget or target.capacity or NO_LIMIT
        searched = next((one for one in self.varied if one.searched), None)
        if searched is None:
            outcome = self._compile(target, knobs)
            return LargestValue(target, knobs, None, outcome if outcome.fits(limit) else None, outcome)
        found: dict[int, Outcome] = {}

        def probe(value: int) -> int | None:
            found[value] = self._compile(target, (*knobs, (searched.name, value)))
            return found[value].reserved

        values = [int(value) for value in searched.values] if isinstance(searched.values, list) else searched.values
        largest = Search(values, limit, probe).largest()  # type: ignore[arg-type]
        last = found[max(found)] if largest is None else found[largest]
        return LargestValue(target, knobs, searched.name, found.get(largest) if largest is not None else None, last)

    def _compile(self, target: Target, knobs: tuple[tuple[str, Knob], ...]) -> Outcome:
        candidate = Candidate(self.step, target, knobs)
        outcome = compile_and_read(candidate, self.folder / run_name(candidate))
        self.outcomes.append(outcome)
        self.done(outcome)
        return outcome


@dataclass(frozen=True)
class LargestValue:
    """The outcome at the largest value of the searched knob that fits, None if none does, and the last one tried."""

    target: Target
    knobs: tuple[tuple[str, Knob], ...]
    searched: str | None
    fits: Outcome | None
    last: Outcome


def run_name(candidate: Candidate) -> str:
    """Return the name of a candidate's run in the logdir."""
    knobs = "_".join(f"{name}-{value}" for name, value in candidate.knobs)
    text = f"{candidate.step.rpartition(':')[2]}_{str(candidate.target).replace(':', '_')}_{knobs}"
    return "".join(character if character.isalnum() or character in "._-" else "-" for character in text)
