"""Rows of a fit: each combination of targets and choices, with a search for the largest value of one knob.

Each candidate is a run of a logdir: a folder with the compiled program and its record.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.fit.search import Search, compilable, last_before_recomputation
from tb_memplugin.logdir.names import is_dump_file, parse_program
from tb_memplugin.model.fit import RECORD, Candidate, Knobs, LargestValue, Outcome, dumped_files, outcome_json
from tb_memplugin.model.largest_value import largest_value
from tb_memplugin.targets import Target

MAX_NAME = 150


def run_name(candidate: Candidate) -> str:
    """Return the name of a candidate's run in the logdir, such as gpt.step_v5e-4x4_remat-none_batch-172.

    Names are unique: a name that is shortened, or whose characters are replaced, ends with a part of a hash.
    """
    knobs = (f"{name}-{value}" for name, value in candidate.knobs)
    place, _, function = candidate.step.rpartition(":")
    dumped = re.split(r"[/\\]", dumped_files(candidate.step))[-2:]  # with the folder: all dumps have the same names
    file = ".".join(dumped) or re.split(r"[/\\]", place)[-1].removesuffix(".py")
    text = "_".join((f"{file}.{function}", candidate.target.replace(":", "-"), *knobs, *candidate.changes))
    name = re.sub(r"[^\w.-]", "_", text)[:MAX_NAME]
    return name if name == text else f"{name}_{sha256(text.encode()).hexdigest()[:8]}"


def write_program(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a candidate's program, by their paths in its run. Delete those of an earlier compilation."""
    for old in folder.rglob("*") if folder.is_dir() else ():
        if old.is_file() and (parse_program(old.name) or is_dump_file(old.name)):
            old.unlink()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_record(outcome: Outcome, logdir: Path) -> None:
    """Write the record of an outcome beside its program."""
    folder = logdir / outcome.run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(json.dumps(outcome_json(outcome), indent=1))


NO_LIMIT = 1 << 62  # for targets whose limit is the host's memory
EXACT_PROOFS = 3  # so many refused answers are each followed by the next smaller value; see `limit_after`
MAX_ROWS = 1_000  # each row has a thread, which mostly waits
Compile = Callable[..., Outcome]  # called with a candidate, and whether to compile it to the end


def ignore(_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Row:
    """Targets in the order in which they are tried until one fits, and the knobs that are not searched."""

    targets: Sequence[Target]
    knobs: Knobs


@dataclass
class Sweep:
    """A step on targets, with its knobs: fixed ones, those with choices, and at most one that is searched.

    `compile` waits until a candidate is compiled; each row calls it from its own thread. It may raise CancelledError.
    """

    step: str
    targets: Sequence[Sequence[Target]]  # for each target its one slice, or the slices to try, smallest first
    fixed: Knobs
    varied: Sequence[Varied]
    compile: Compile
    folder: Path  # a logdir, which gets the record of each candidate
    budget: int | None = None
    proves: bool | None = None  # whether to compile the answers to the end; None: only the doubtful ones
    done: Callable[[Outcome], None] = ignore
    finished: Callable[[LargestValue], None] = ignore
    defaults: Mapping[str, Any] = field(default_factory=dict)  # the step's own values of its knobs
    outcomes: list[Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len([one for one in self.varied if one.searched]) > 1:
            names = ", ".join(one.name for one in self.varied)
            raise InputError("Two ranges", names, "search one knob, and list others")
        given = [name for name, _ in self.fixed] + [one.name for one in self.varied]
        if twice := sorted({name for name in given if given.count(name) > 1}):
            raise InputError("A knob given twice", ", ".join(twice), "give each knob once")

    @property
    def searched(self) -> Varied | None:
        return next((one for one in self.varied if one.searched), None)

    def rows(self) -> list[Row]:
        """Return the combinations of targets and choices."""
        choices = [[(one.name, value) for value in one.values] for one in self.varied if not one.searched]
        rows = [Row(targets, (*self.fixed, *knobs)) for targets, knobs in product(self.targets, product(*choices))]
        if len(rows) > MAX_ROWS:
            raise InputError(f"{len(rows):,} combinations", self.step, f"ask for at most {MAX_ROWS:,}")
        return rows

    def run(self) -> list[LargestValue]:
        """Compile the candidates that the rows need, and return an answer for each row that was not canceled."""
        rows = self.rows()
        with ThreadPoolExecutor(len(rows)) as pool:
            return [answer for answer in pool.map(self.answer, rows) if answer is not None]

    def answer(self, row: Row) -> LargestValue | None:
        """Compile the candidates that a row needs, and return its answer; None if it was canceled before the first."""
        answer, smaller = None, list[Outcome]()
        for target in row.targets:
            found: dict[int, Outcome] = {}
            try:
                self._search(target, row.knobs, found)
            except CancelledError:
                if not found:
                    break
            answer = largest_value(str(target), row.knobs, self.searched.name if self.searched else "", found)
            answer = replace(answer, smaller=tuple(smaller))
            if answer.largest is not None:
                break
            smaller.append(answer.last)
        if answer is not None:
            self.finished(answer)
        return answer

    def _search(self, target: Target, knobs: Knobs, found: dict[int, Outcome]) -> None:
        """Compile candidates until the largest value is known. `found` gets them by value, or by 0 without a search."""
        searched = self.searched
        if searched is None:
            found[0] = self.compile_candidate(target, knobs)
            if self._needs_proof(found[0]):
                found[0] = self.compile_candidate(target, knobs, to_end=True)
            return
        name, proved = searched.name, set[int]()
        of_kernels = False  # the answer depends on the chip's own memory, which is compared at the end only

        def probe(value: int) -> Outcome:
            if value not in found or (of_kernels and value not in proved):
                found[value] = self.compile_candidate(target, (*knobs, (name, value)), to_end=of_kernels)
                proved.update([value] if of_kernels else ())
            return found[value]

        values = compilable(searched.numbers, target.devices, probe)
        limit = self.budget or target.capacity or NO_LIMIT
        is_rising = any(one.is_traced for one in found.values())

        def search() -> int | None:
            return Search(values, limit, lambda value: probe(value).compared_bytes, is_rising=is_rising).largest()

        while (largest := search()) is not None:
            if largest in proved or not self._needs_proof(found[largest]):
                last_before_recomputation(values, found, probe)
                break
            found[largest] = self.compile_candidate(target, (*knobs, (name, largest)), to_end=True)
            proved.add(largest)
            of_kernels |= found[largest].is_refused_for_kernel
            limit = limit if of_kernels else min(limit, limit_after(found[largest], len(proved)))

    def _needs_proof(self, outcome: Outcome) -> bool:
        """Return whether an answer should be compiled to the end, which takes a minute or more."""
        return outcome.fits and (outcome.doubtful if self.proves is None else self.proves)

    def compile_candidate(
        self, target: Target, knobs: Knobs, changes: Sequence[str] = (), to_end: bool = False
    ) -> Outcome:
        """Compile a candidate, and compare it with the limit."""
        candidate = Candidate(self.step, str(target), knobs, tuple(changes))
        outcome = self.compile(candidate, to_end=True) if to_end else self.compile(candidate)
        for earlier in [one for one in self.outcomes if to_end and one.candidate == candidate]:
            self.outcomes.remove(earlier)
        outcome = replace(
            outcome,
            run=run_name(candidate),
            limit_bytes=self.budget or outcome.capacity_bytes,
            searched=self.searched.name if self.searched else "",
        )
        write_record(outcome, self.folder)
        self.outcomes.append(outcome)
        self.done(outcome)
        return outcome


def limit_after(proof: Outcome, count: int) -> int:
    """Return the limit for the next answer: after EXACT_PROOFS refusals, twice as far from the capacity as the last."""
    capacity, reserved = proof.capacity_bytes, proof.reserved_bytes
    if not proof.refused or capacity is None or reserved is None or count <= EXACT_PROOFS:
        return NO_LIMIT
    return capacity - 2 * (capacity - reserved)


def choices_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of knobs whose values differ between rows."""
    different = dict.fromkeys(pair for row in rows for pair in row.knobs)
    counts = Counter(name for name, _ in different)
    return [name for name, count in counts.items() if count > 1]
