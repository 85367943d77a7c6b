"""Candidates of a fit: each combination of targets and choices, with a search for the largest value of one knob."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from tb_memplugin.fit.knobs import Varied
from tb_memplugin.fit.run_folder import run_name, write_record
from tb_memplugin.fit.search import Search
from tb_memplugin.fit.targets import Target
from tb_memplugin.model.fit import Candidate, Knob, LargestValue, Outcome

NO_LIMIT = 1 << 62  # of targets whose limit is the host's memory


@dataclass(frozen=True)
class Sweep:
    """A step on targets, with its knobs: fixed, chosen from, and one that is searched."""

    step: str
    targets: Sequence[Target]
    fixed: tuple[tuple[str, Knob], ...]
    varied: Sequence[Varied]
    compile: Callable[[Candidate], Outcome]
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
        for target, choices in product(self.targets, product(*chosen)):
            yield target, (*self.fixed, *choices)

    def _one(self, combination: tuple[Target, tuple[tuple[str, Knob], ...]]) -> LargestValue:
        target, knobs = combination
        searched = next((one for one in self.varied if one.searched), None)
        if searched is None:
            outcome = self._compile(target, knobs)
            return LargestValue(str(target), knobs, "", outcome if outcome.fits else None, outcome)
        found: dict[int, Outcome] = {}

        def probe(value: int) -> int | None:
            found[value] = self._compile(target, (*knobs, (searched.name, value)))
            return found[value].reserved_bytes

        limit = self.budget or target.capacity or NO_LIMIT
        values = [int(value) for value in searched.values] if isinstance(searched.values, list) else searched.values
        largest = Search(values, limit, probe).largest()  # type: ignore[arg-type]
        last = found[max(found)] if largest is None else found[largest]
        return LargestValue(
            str(target), knobs, searched.name, found.get(largest) if largest is not None else None, last
        )

    def _compile(self, target: Target, knobs: tuple[tuple[str, Knob], ...]) -> Outcome:
        candidate = Candidate(self.step, str(target), knobs)
        folder = self.folder / run_name(candidate)
        outcome = self.compile(candidate)
        searched = next((one.name for one in self.varied if one.searched), "")
        limit = self.budget or outcome.capacity_bytes
        outcome = replace(outcome, run=folder.name, limit_bytes=limit, searched=searched)
        write_record(outcome, folder)
        self.outcomes.append(outcome)
        self.done(outcome)
        return outcome
