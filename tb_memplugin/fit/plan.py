"""Compiling the candidates of a plan: few of many combinations, then the fastest with changes that need no source.

Where the step has no knob for what its backward pass keeps, policies of `jax.checkpoint` are among the changes, with
the names of arrays that the step gives by `checkpoint_name`.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.advice import pieces_of
from tb_memplugin.fit.compile_task import MAIN
from tb_memplugin.fit.knobs import parse_changes
from tb_memplugin.fit.sweep import Row, Sweep
from tb_memplugin.model.fit import MICROBATCHES, RECOMPUTED, Knobs, Outcome
from tb_memplugin.model.fit_plan import RECOMPUTATION, Planned, batch_knob, is_of_device, plan
from tb_memplugin.targets import Target, parse_target, targets_to_try

PARTS = (1, 2, 4, 8)  # microbatches to try
EVERY = 24  # combinations for each target, up to which all are compiled
MAX_TRIED = 3  # changes of a candidate
LEAST_SAVING = 0.01  # of the memory, for a change to be compiled together with others
MAX_THREADS = 16  # threads only wait for compilations


def knobs_of_batch(defaults: Mapping[str, Any], fixed: Sequence[str], on: Sequence[str], batch: int) -> list[str]:
    """Return the batch of all devices as --set takes it. InputError where a step has no knob for it."""
    name = batch_knob(defaults)
    if name is None:
        raise InputError("The step has no knob for the batch", "--global-batch", "name it: --set KNOB=VALUE")
    if any(text.partition("=")[0] == name for text in fixed):
        raise InputError("A batch given twice", f"--set {name}", "leave out --global-batch")
    if not is_of_device(name):
        return [f"{name}={batch}"]
    devices = {one.devices for text in on for one in targets_to_try(text)}
    if len(devices) != 1 or batch % min(devices):
        text = f"{name} is for each device: name targets with equally many devices, which divide {batch}"
        raise InputError("Not one batch for each device", "--global-batch", text)
    return [f"{name}={batch // min(devices)}"]


def proposed_knobs(defaults: Mapping[str, Any], given: Sequence[str], batch: int | None) -> list[str]:
    """Return choices, as --vary takes them, of knobs that a user left at their default: microbatches, and a switch."""
    found = []
    for name, default in defaults.items():
        if name in given:
            continue
        if name.lower() in MICROBATCHES and type(default) is int and batch:
            found.append(f"{name}={','.join(str(parts) for parts in PARTS if batch % parts == 0)}")
        if RECOMPUTATION.search(name) and isinstance(default, bool):
            found.append(f"{name}=False,True")
    return found


def compile_plan(sweep: Sweep) -> None:
    """Compile candidates of each target, and the fastest ones with changes. `sweep.outcomes` gets them."""
    groups = [list(rows) for _, rows in groupby(sweep.rows(), lambda row: tuple(map(str, row.targets)))]
    with ThreadPoolExecutor(MAX_THREADS) as pool:
        list(pool.map(partial(_compile_rows, sweep), groups))
        list(pool.map(partial(_compile_changed, sweep), _to_change(sweep)))


def _compile_rows(sweep: Sweep, rows: Sequence[Row]) -> None:
    """Compile the rows of a target: all if they are few, else by turns of one knob while the others stay the best."""
    choices = _by_microbatches(rows)
    if len(choices) <= EVERY:
        with ThreadPoolExecutor(len(choices)) as pool:
            list(pool.map(partial(_fewest_parts, sweep), choices))
        return
    done, best = set[int](), 0
    while round_ := [number for number in _neighbors(choices, best) if number not in done]:
        with ThreadPoolExecutor(len(round_)) as pool:
            list(pool.map(lambda number: _fewest_parts(sweep, choices[number]), round_))
        done |= set(round_)
        best = max(done, key=lambda number: _merit(sweep, choices[number]))


def _by_microbatches(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows by all knobs but the number of microbatches, fewest first."""
    found: dict[Knobs, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(pair for pair in row.knobs if pair[0].lower() not in MICROBATCHES), []).append(row)
    return [sorted(some, key=_parts) for some in found.values()]


def _parts(row: Row) -> float:
    parts = (value for name, value in row.knobs if name.lower() in MICROBATCHES)
    return next((float(value) for value in parts if isinstance(value, int | float)), 0.0)


def _fewest_parts(sweep: Sweep, rows: Sequence[Row]) -> None:
    """Compile rows until one fits: more microbatches take more time, and less memory than is there is not needed."""
    for row in rows:
        answer = sweep.answer(row)
        if answer is None or answer.largest is not None:
            return


def _neighbors(choices: Sequence[Sequence[Row]], best: int) -> Iterator[int]:
    """Yield the numbers of a choice, and of those that differ from it in one knob."""
    own = dict(choices[best][0].knobs)
    for number, rows in enumerate(choices):
        knobs = {name: value for name, value in rows[0].knobs if name.lower() not in MICROBATCHES}
        if sum(own.get(name) != value for name, value in knobs.items()) <= 1:
            yield number


def _merit(sweep: Sweep, rows: Sequence[Row]) -> tuple[bool, float, int]:
    """Return how good a choice is: one that fits, then the fastest, then the least memory."""
    knobs = [dict(row.knobs) for row in rows]
    own = [
        one
        for one in plan(sweep.outcomes).candidates
        if any(each.items() <= one.knobs.items() for each in knobs) and one.outcome.reserved_bytes is not None
    ]
    merits = [(one.outcome.fits, one.rate, -(one.outcome.reserved_bytes or 0)) for one in own]
    return max(merits, default=(False, 0.0, -(1 << 62)))


def _to_change(sweep: Sweep) -> list[Planned]:
    """Return the candidates to change: of each target the fastest that fits, and a faster one that does not."""
    if sweep.step.endswith(f":{MAIN}") or sweep.targets[0][0].of_torch:
        return []
    found, chosen = plan(sweep.outcomes), list[Planned]()
    for target in dict.fromkeys(one.target for one in found.candidates):
        own = [one for one in found.candidates if one.target == target and one.outcome.reserved_bytes is not None]
        fitting = next((one for one in own if one.outcome.fits), None)
        refused = [one for one in own if not one.outcome.fits and (fitting is None or one.rate > fitting.rate)]
        nearest = max(refused, key=lambda one: one.outcome.left_bytes or 0, default=None)
        chosen += [one for one in (fitting, nearest) if one is not None]
    return chosen


def _compile_changed(sweep: Sweep, one: Planned) -> None:
    """Compile a candidate with each change that promises to save memory, then with all that did."""
    target = parse_target(one.target)
    assert target is not None
    every = pieces_of(one.outcome, sweep.folder, sweep.defaults)
    tried = [piece.changes for piece in every if piece.changes and not parse_changes(piece.changes).knobs]
    tried = list(dict.fromkeys(changes for changes in tried if changes != (RECOMPUTED,)))[:MAX_TRIED]
    policies = [] if any(map(RECOMPUTATION.search, one.knobs)) else [(change,) for change in one.outcome.policies]
    with ThreadPoolExecutor(MAX_THREADS) as pool:
        compile_changed = partial(_compile_change, sweep, target, one.outcome)
        helpful = list(filter(None, pool.map(compile_changed, tried)))
        recomputing = list(filter(None, pool.map(compile_changed, policies)))
    helpful += [min(recomputing, key=lambda after: (not after.fits, after.step_seconds))] if recomputing else []
    if len(helpful) > 1:
        together = tuple(dict.fromkeys(change for after in helpful for change in after.candidate.changes))
        _compile_change(sweep, target, one.outcome, together)


def _compile_change(sweep: Sweep, target: Target, before: Outcome, changes: Sequence[str]) -> Outcome | None:
    """Compile a candidate with changes. Return the outcome if they save memory; None where they save none."""
    try:
        after = sweep.compile_candidate(target, before.candidate.knobs, changes)
    except CancelledError:
        return None
    if after.reserved_bytes is None:
        return None
    return after if after.reserved_bytes < (1 - LEAST_SAVING) * (before.reserved_bytes or 0) else None
