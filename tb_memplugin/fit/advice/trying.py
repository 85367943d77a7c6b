"""Advice about an answer, carried out: what each piece saves once compiled, and the largest value with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import floor, gcd

from tb_memplugin.fit.changes.changes import parse_changes
from tb_memplugin.fit.search import Search
from tb_memplugin.model.fit import Knobs, LargestValue, Outcome, Tried

COMBINED = "All of these"


@dataclass(frozen=True)
class AdviceToTry:
    """A piece of advice: `changes` carry it out, unless only the user can. `promised_bytes` are those of the peak."""

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
        """Try each piece, then all that helped together. Pieces that were stopped are left out."""
        if self.answer.last.reserved_bytes is None:  # there is no program to change
            return []
        with ThreadPoolExecutor(jobs) as pool:
            tried = [one for one in pool.map(self._try, pieces) if one is not None]
        helpful = [one for one in tried if one.is_compiled and one.helps]
        if len(helpful) > 1:
            changes = tuple(dict.fromkeys(change for one in helpful for change in one.changes))
            together = self._try(AdviceToTry(COMBINED, sum(one.promised_bytes for one in helpful), changes))
            tried += [together] if together is not None else []
        return tried

    def _try(self, piece: AdviceToTry) -> Tried | None:
        try:
            return self._compiled(piece) if piece.changes else self._estimated(piece)
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
        return replace(tried, saving_bytes=saved, new_value=self._largest(piece, values, number, after))

    def _estimated(self, piece: AdviceToTry) -> Tried:
        """Estimate the value, as memory rises in a line with it. Never more than was searched."""
        before, each = self.answer.last, self._bytes_per_item()
        tried = replace(self._tried(piece, before, None), saving_bytes=piece.promised_bytes)
        limit, reserved = before.limit_bytes, before.reserved_bytes
        if not self.values or limit is None or reserved is None:
            return tried
        room = limit - reserved + piece.promised_bytes
        own = int(dict(before.candidate.knobs)[self.answer.searched])
        most = own + floor(room / each) if each else own - (room < 0)
        reached = [value for value in self.values if value <= most]
        return replace(tried, new_value=reached[-1] if reached else None)

    def _tried(self, piece: AdviceToTry, before: Outcome, after: Outcome | None) -> Tried:
        answer = self.answer
        return Tried(
            answer.target, answer.knobs, answer.searched, piece.title, piece.changes, before, after,
            value=answer.value, new_value=answer.value, saving_bytes=None, promised_bytes=piece.promised_bytes,
        )  # fmt: skip

    def _values(self, changes: Sequence[str]) -> Sequence[int]:
        """Return the values to search: with a knob of microbatches, those that they divide."""
        knobs = parse_changes(changes).knobs
        parts = max((value for value in knobs.values() if isinstance(value, int)), default=1)
        if parts <= 1 or not self.values:
            return self.values
        unit = parts * gcd(*self.values, self.devices)  # each part is split over the devices, unless values are too
        return [value for value in self.values if value % unit == 0] or self.values

    def _number(self, values: Sequence[int]) -> int:
        """Return the number of the answer's value, or of the next one below."""
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
        """Return what memory rises by with the value, by its line, else from the first to the last known value."""
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
        """Return the largest value with the change, beginning at the known answer."""
        limit, reserved, each = after.limit_bytes, after.reserved_bytes, self._bytes_per_item()
        if not values or limit is None or reserved is None:
            return None if self.answer.value is None else int(self.answer.value)
        guess = number + 1
        if each and reserved < limit:
            most = values[number] + floor((limit - reserved) / each)
            guess = sum(value <= most for value in values) - 1

        def probe(value: int) -> int | None:
            return self.compile(self._knobs(value), piece.changes).compared_bytes

        search = Search(values, limit, probe, tried={number: reserved})
        return search.largest_from(number, max(guess, number + 1))
