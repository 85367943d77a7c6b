"""Trying the advice about each answer of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tb_memplugin.fit.advice.pieces import pieces_of
from tb_memplugin.fit.advice.trying import Trial
from tb_memplugin.fit.sweep import Sweep
from tb_memplugin.model.fit import Knobs, LargestValue, Outcome, Tried
from tb_memplugin.targets.target import parse_target

MAX_THREADS = 16  # they wait for compiles
USUAL_PIECES = 3  # of advice that is compiled, about an answer


def try_answers(sweep: Sweep, found: Sequence[LargestValue], defaults: Mapping[str, Any]) -> list[Tried]:
    """Return what each piece of advice gives. `defaults` are the step's own values of its knobs."""
    return [one for answer in found for one in _try_answer(sweep, answer, defaults)]


def _try_answer(sweep: Sweep, answer: LargestValue, defaults: Mapping[str, Any]) -> list[Tried]:
    target = parse_target(answer.target)
    assert target is not None

    def compile_changed(knobs: Knobs, changes: tuple[str, ...]) -> Outcome:
        return sweep.compile_candidate(target, knobs, changes)

    values = sweep.searched.numbers if sweep.searched is not None else ()
    pieces = pieces_of(answer.last, sweep.folder, defaults)
    return Trial(answer, values, compile_changed, _known(sweep, answer), target.devices).run(pieces, MAX_THREADS)


def _known(sweep: Sweep, answer: LargestValue) -> dict[int, int]:
    """Return the reserved bytes of the answer's candidates by value: of those where the compiler recomputes nothing.

    Where there is at most one of them, return the two smallest.
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
