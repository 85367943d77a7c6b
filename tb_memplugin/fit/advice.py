"""Advice about a sweep's answers, carried out: the saving of each piece if compiled, and the largest value with it."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from math import floor, gcd
from pathlib import Path
from typing import Any

from tb_memplugin.analysis.advice import Advice, AdviceKind, advise
from tb_memplugin.fit.compiling.child import TRACED
from tb_memplugin.fit.compiling.compiling import programs_of
from tb_memplugin.fit.knobs import parse_changes
from tb_memplugin.fit.search import Search
from tb_memplugin.fit.sweep import Sweep
from tb_memplugin.model.fit import MICROBATCHES, RECOMPUTED, Knobs, LargestValue, OfTorch, Outcome, Tried, dumped_files
from tb_memplugin.model.fit_plan import batch_knob
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.targets import parse_target

COMBINED = "All of these"


@dataclass(frozen=True)
class AdviceToTry:
    """Advice that promises to lower the peak by `promised_bytes`. `changes` are empty if only users can make them."""

    title: str
    promised_bytes: int
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """An answer, the values that were searched, and a function that compiles a candidate of it with changes."""

    answer: LargestValue
    values: Sequence[int]
    compile: Callable[[Knobs, tuple[str, ...]], Outcome]
    known: Mapping[int, int] = field(default_factory=dict)  # reserved bytes by value
    devices: int = 1

    def run(self, pieces: Sequence[AdviceToTry], jobs: int = 1) -> list[Tried]:
        """Try each piece, then all pieces that helped together. Pieces whose compilation was stopped are left out."""
        if self.answer.last.reserved_bytes is None:  # there is no program to change
            return []
        with ThreadPoolExecutor(jobs) as pool:
            tried = [one for one in pool.map(self._try, pieces) if one is not None]
        helpful = [one for one in tried if one.is_compiled and one.helps]
        # Compiled code with further changes takes minutes, and refuses tensors that the host returns in other strides.
        joined = [one for one in helpful if OfTorch.COMPILE not in one.changes]
        if len(joined) > 1:
            changes = tuple(dict.fromkeys(change for one in joined for change in one.changes))
            title = COMBINED if joined == helpful else f"{COMBINED}, not compiled"
            together = self._try(AdviceToTry(title, sum(one.promised_bytes for one in joined), changes))
            tried += [together] if together is not None else []
        return tried

    def _try(self, piece: AdviceToTry) -> Tried | None:
        try:
            tried = self._compiled(piece) if piece.changes else self._estimated(piece)
            if tried.error and piece.changes == (RECOMPUTED,):  # of a loop that is no jax.lax.scan
                return self._estimated(replace(piece, changes=()))
            return tried
        except CancelledError:
            return None

    def _compiled(self, piece: AdviceToTry) -> Tried:
        values = self._values(piece.changes)
        number = self._number(values)
        before = self._at(values, number)
        after = self.compile(before.candidate.knobs, piece.changes)
        tried = self._tried(piece, before, after)
        if after.reserved_bytes is None or before.reserved_bytes is None:
            return replace(tried, error=after.error or before.error)
        saved = before.reserved_bytes - after.reserved_bytes
        found = self._largest(piece, values, number, after)
        return replace(tried, saving_bytes=saved, new_value=found, at_end=self._is_last(found, values))

    def _estimated(self, piece: AdviceToTry) -> Tried:
        """Estimate the largest value from the line along which memory rises, up to the largest searched value."""
        before, each = self.answer.last, self._bytes_per_item()
        tried = replace(self._tried(piece, before, None), saving_bytes=piece.promised_bytes)
        limit, reserved = before.limit_bytes, before.reserved_bytes
        if not self.values or limit is None or reserved is None:
            return tried
        room = limit - reserved + piece.promised_bytes
        own = int(dict(before.candidate.knobs)[self.answer.searched])
        most = own + floor(room / each) if each else own - (room < 0)
        reached = [value for value in self.values if value <= most]
        found = reached[-1] if reached else None
        return replace(tried, new_value=found, at_end=self._is_last(found, self.values))

    def _is_last(self, found: int | None, values: Sequence[int]) -> bool:
        return bool(values) and found == values[-1]

    def _tried(self, piece: AdviceToTry, before: Outcome, after: Outcome | None) -> Tried:
        answer = self.answer
        return Tried(
            answer.target, answer.knobs, answer.searched, piece.title, piece.changes, before, after,
            value=answer.value, new_value=answer.value, saving_bytes=None, promised_bytes=piece.promised_bytes,
        )  # fmt: skip

    def _values(self, changes: Sequence[str]) -> Sequence[int]:
        """Return the values to search; if the changes set microbatches, only multiples of their number."""
        knobs = parse_changes(changes).knobs
        parts = max((value for value in knobs.values() if isinstance(value, int)), default=1)
        if parts <= 1 or not self.values:
            return self.values
        unit = parts * gcd(*self.values, self.devices)  # devices split each part, if they split all values
        return [value for value in self.values if value % unit == 0] or self.values

    def _number(self, values: Sequence[int]) -> int:
        """Return the index in `values` of the answer's value, or of the next one below."""
        if not values:
            return 0
        value = int(dict(self.answer.last.candidate.knobs)[self.answer.searched])
        return max(sum(one <= value for one in values) - 1, 0)

    def _at(self, values: Sequence[int], number: int) -> Outcome:
        """Return the unchanged program at a value."""
        last = self.answer.last
        if not values:
            return last
        knobs = self._knobs(values[number])
        return last if dict(knobs) == dict(last.candidate.knobs) else self.compile(knobs, ())

    def _bytes_per_item(self) -> float:
        """Return the growth of memory per unit of the value: the line's, else from the first known value on."""
        line, known = self.answer.line, self.known
        if line is not None:
            return max(line.bytes_per_item, 0)
        if len(known) < 2:
            return 0
        first, last = min(known), max(known)
        return max((known[last] - known[first]) / (last - first), 0)

    def _knobs(self, value: int) -> Knobs:
        name = self.answer.searched
        return tuple((key, value if key == name else own) for key, own in self.answer.last.candidate.knobs)

    def _largest(self, piece: AdviceToTry, values: Sequence[int], number: int, after: Outcome) -> int | None:
        """Return the largest value that fits with the change, searched from the known answer on."""
        limit, reserved, each = after.limit_bytes, after.reserved_bytes, self._bytes_per_item()
        if not values or limit is None or reserved is None:
            return None if self.answer.value is None else int(self.answer.value)
        guess = number + 1
        if each and reserved < limit:
            most = values[number] + floor((limit - reserved) / each)
            guess = sum(value <= most for value in values) - 1

        def probe(value: int) -> int | None:
            return self.compile(self._knobs(value), piece.changes).compared_bytes

        search = Search(values, limit, probe, {number: reserved}, after.is_traced)
        return search.largest_from(number, max(guess, number + 1))


# An option that trades time for memory, tried on TPU where nothing fits. With it, libtpu 0.0.52 repeats other
# instructions: of six programs for v5e that were far too large, four reserved 11, 12, 24 and 55 % less, and two the
# same. The largest batch of four others, which fit with a smaller one, stayed the same.
RECOMPUTATION_OPTION = "option:xla_tpu_rematerialization_algo=2"


def pieces_of(outcome: Outcome, logdir: Path, defaults: Mapping[str, Any]) -> list[AdviceToTry]:
    """Return the pieces to try for a compiled candidate. `defaults` are the step's own values of its knobs."""
    program = _program(outcome, logdir)
    if program is None:
        return []
    values = {**defaults, **dict(outcome.candidate.knobs)}
    if program.kind.has_tensor_stacks:
        return _pieces_of_torch(outcome, program, values)
    has_source = not dumped_files(outcome.candidate.step)
    pieces = [_piece(advice, values, has_source) for advice in advise(program)]
    target = parse_target(outcome.candidate.target)
    if not outcome.fits and target is not None and target.platform == "tpu":
        title = "Let the compiler choose otherwise what to recompute"
        pieces.append(AdviceToTry(title, 0, (RECOMPUTATION_OPTION,)))
    return pieces


def _program(outcome: Outcome, logdir: Path) -> Recording | None:
    dumps, traced = programs_of(logdir / outcome.run), logdir / outcome.run / TRACED
    if dumps:
        recordings = read_hlo(dumps[-1].read_bytes(), source=dumps[-1].name)
    elif outcome.run and traced.is_file():
        recordings = [one for part in open_file(traced.read_bytes(), TRACED) for one in part.read()]
    else:
        return None
    program = next(recording for recording in recordings if recording.is_main_memory)
    return replace(program, capacity=outcome.limit_bytes) if outcome.limit_bytes else program


def _pieces_of_torch(outcome: Outcome, program: Recording, values: Mapping[str, Any]) -> list[AdviceToTry]:
    """Return the advice about a traced step of PyTorch, then all other changes that it can be traced with."""
    target = parse_target(outcome.candidate.target)
    possible = {
        OfTorch.FSDP: target is not None and target.devices > 1,
        OfTorch.ACCUMULATE: batch_knob(values) is not None and not _microbatches(values),
    }
    changes = [one for one in OfTorch if possible.get(one, True)]
    pieces = [
        _piece(one if {*one.edits} <= {*changes} else replace(one, edits=()), values, has_source=True)
        for one in advise(program)
    ]
    tried = {change for piece in pieces for change in piece.changes}
    return pieces + [AdviceToTry(one.label, 0, (one,)) for one in changes if one not in tried]


def _piece(advice: Advice, values: Mapping[str, Any], has_source: bool) -> AdviceToTry:
    changes = advice.edits or (_microbatches(values) if advice.kind is AdviceKind.MICROBATCHING else ())
    if RECOMPUTED in changes and not has_source:
        changes = ()
    if changes and not advice.edits and advice.kind is AdviceKind.MICROBATCHING:
        return AdviceToTry(f"Set {changes[0].removeprefix('set:')}", advice.saving_bytes, changes)
    return AdviceToTry(advice.title, advice.saving_bytes, changes)


def _microbatches(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the change that doubles the number of microbatches; empty if the step has no knob for them."""
    for name, value in values.items():
        if name.lower() in MICROBATCHES and isinstance(value, int) and value >= 1:
            return (f"set:{name}={2 * value}",)
    return ()


MAX_THREADS = 16  # threads only wait for compilations
USUAL_PIECES = 3  # expected number of pieces per answer, for the bar of progress


def try_answers(sweep: Sweep, found: Sequence[LargestValue]) -> list[Tried]:
    """Try the advice about each answer; return the results."""
    tried, values = list[Tried](), sweep.searched.numbers if sweep.searched is not None else ()
    for answer in found:
        target = parse_target(answer.target)
        assert target is not None
        pieces = pieces_of(answer.last, sweep.folder, sweep.defaults)
        compile_there = partial(sweep.compile_candidate, target)
        trial = Trial(answer, values, compile_there, _known(sweep, answer), target.devices)
        tried += trial.run(pieces, MAX_THREADS)
    return tried


def _known(sweep: Sweep, answer: LargestValue) -> dict[int, int]:
    """Return the reserved bytes, by value, of the answer's candidates for which the compiler recomputes nothing.

    If there are fewer than two of these, return the two smallest candidates.
    """
    known, clean = dict[int, int](), dict[int, int]()
    for outcome in sweep.outcomes:
        candidate, knobs = outcome.candidate, dict(outcome.candidate.knobs)
        value = knobs.pop(answer.searched, None)
        is_own = candidate.target == answer.target and not candidate.changes and knobs == dict(answer.knobs)
        if is_own and value is not None and outcome.reserved_bytes is not None:
            known[int(value)] = outcome.reserved_bytes
            clean |= {} if outcome.rematerialized else {int(value): outcome.reserved_bytes}
    return clean if len(clean) > 1 else dict(sorted(known.items())[:2])
