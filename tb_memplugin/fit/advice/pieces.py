"""Advice about a compiled candidate, as pieces to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tb_memplugin.analysis.advice import Advice, AdviceKind, advise
from tb_memplugin.fit.advice.trying import AdviceToTry
from tb_memplugin.fit.compiling.compiling import programs_of
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.targets.target import parse_target

# Names of knobs that split a batch into parts, by libraries and by custom.
MICROBATCHES = (
    "microbatches", "num_microbatches", "n_microbatches", "accumulate", "accumulation", "accumulation_steps",
    "accum_steps", "grad_accum", "grad_accum_steps", "gradient_accumulation", "gradient_accumulation_steps",
    "every_k_schedule",
)  # fmt: skip
# Options that trade time for memory, where nothing fits. With this one, libtpu 0.0.52 chooses otherwise what to repeat:
# of six programs for v5e that were far too large, four reserved 11, 12, 24 and 55 % less, and two as much. It does not
# raise the largest batch of a program that fits with a smaller one (none of four), as both ways end at the limit.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "tpu": {"Let the compiler choose otherwise what to recompute": "option:xla_tpu_rematerialization_algo=2"},
}


def pieces_of(outcome: Outcome, logdir: Path, defaults: Mapping[str, Any]) -> list[AdviceToTry]:
    """Return the pieces to try for a compiled candidate. `defaults` are the step's own values of its knobs."""
    program = _program(outcome, logdir)
    if program is None:
        return []
    values = {**defaults, **dict(outcome.candidate.knobs)}
    pieces = [_piece(advice, values) for advice in advise(program)]
    return pieces if outcome.fits else [*pieces, *_options(outcome)]


def _program(outcome: Outcome, logdir: Path) -> Recording | None:
    dumps = programs_of(logdir / outcome.run)
    if not dumps:
        return None
    recordings = read_hlo(dumps[-1].read_bytes(), source=dumps[-1].name)
    program = next(recording for recording in recordings if recording.is_main_memory)
    return replace(program, capacity=outcome.limit_bytes) if outcome.limit_bytes else program


def _piece(advice: Advice, values: Mapping[str, Any]) -> AdviceToTry:
    changes = advice.edits or (_microbatches(values) if advice.kind is AdviceKind.MICROBATCHING else ())
    if changes and advice.kind is AdviceKind.MICROBATCHING:
        return AdviceToTry(f"Set {changes[0].removeprefix('set:')}", advice.saving_bytes, changes)
    return AdviceToTry(advice.title, advice.saving_bytes, changes)


def _microbatches(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the change to twice as many parts, where the step has a knob for them."""
    for name, value in values.items():
        if name.lower() in MICROBATCHES and isinstance(value, int) and value >= 1:
            return (f"set:{name}={2 * value}",)
    return ()


def _options(outcome: Outcome) -> Iterator[AdviceToTry]:
    target = parse_target(outcome.candidate.target)
    for title, change in OPTIONS.get(target.platform if target else "", {}).items():
        yield AdviceToTry(title, 0, (change,))
