"""What a scan stacks up in its forward loop for its backward loop: one slice for each turn, all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, Kind, by_size, saving
from tb_memplugin.analysis.advice.support.passes import Bools, Passes
from tb_memplugin.analysis.ownership.frames import frame_text, nearest, of_frameworks
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.replay.what_if import Change, join, lives, sharers, without
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

UPDATES = ("dynamic_update_slice",)
SLICES = ("dynamic_slice",)
LEADING = re.compile(r"\w+\[(\d{1,18})[,\]]")


class Loop(NamedTuple):
    """A forward loop: its rows that are stacks for the backward pass, and those that it carries from turn to turn."""

    position: int  # that runs it
    stacks: I64
    carried: I64
    turns: int


class Dropped(NamedTuple):
    """What a loop need not stack up."""

    loop: Loop
    rows: I64
    change: Change


def advise(recording: Recording, known: Passes) -> Iterator[Advice]:
    """A piece for each scan in the source, which may be run several times over."""
    written: dict[str | int, list[Dropped]] = {}
    for loop in _loops(recording, known):
        if dropped := _dropped(recording, known, loop):
            written.setdefault(_place(recording, loop) or loop.position, []).append(dropped)
    for place, found in written.items():
        if piece := _around_body(recording, place if isinstance(place, str) else "", found):
            yield piece


def _loops(recording: Recording, known: Passes) -> Iterator[Loop]:
    table, values = recording.allocations, known.values
    op = table.op.strings
    whiles = [code for code in range(len(op)) if op[code] == "while"]
    forward = known.within(Pass.FORWARD)
    result = np.flatnonzero(np.isin(table.op.codes, whiles) & (known.made >= 0))
    result = result[forward[known.made[result]] & (values.floating[known.value[result]] != 0)]
    read_again = known.last_use(known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)) >= 0
    written = np.zeros(len(table), dtype=bool)  # a slice of it, in a forward pass
    slices = (known.made >= 0) & (forward & known.does(*UPDATES))[known.made]
    written[sharers(recording, np.flatnonzero(slices))] = True
    for position in np.unique(known.made[result]).tolist():
        here = result[known.made[result] == position]
        stack = read_again[here] & written[here]
        turns = [int(found[1]) for row in here[stack].tolist() if (found := LEADING.match(table.shape[row]))]
        if turns and len(set(turns)) == 1 and turns[0] > 1:
            yield Loop(position, here[stack], here[~stack], turns[0])


def _dropped(recording: Recording, known: Passes, loop: Loop) -> Dropped | None:
    table = recording.allocations
    keep, missing = _inputs(table.size[loop.carried], table.size[loop.stacks] // loop.turns, loop.turns)
    dropped = loop.stacks[~keep]
    if not len(dropped):
        return None
    own = lives(recording).take(dropped[:1])
    stacked = Change(own.start, own.end, np.array([missing], dtype=np.int64))
    gone = without(recording, sharers(recording, dropped))
    return Dropped(loop, dropped, join(gone, stacked, _made_again(recording, known, loop, dropped)))


def _around_body(recording: Recording, place: str, found: list[Dropped]) -> Advice | None:
    saved = saving(recording, join(*(dropped.change for dropped in found)))
    if saved is None:
        return None
    rows = np.concatenate([dropped.rows for dropped in found])
    size = int(recording.allocations.size[rows].sum())
    turns = " and ".join(str(count) for count in sorted({dropped.loop.turns for dropped in found}))
    scan = f"a scan over {turns} turns" if len(found) == 1 else f"{len(found)} scans over {turns} turns"
    stacks_up = "forward loop stacks" if len(found) == 1 else "forward loops stack"
    return Advice(
        kind=Kind.REMATERIALIZATION,
        title=f"Rematerialize the body of {scan}",
        sentence=f"The scan's {stacks_up} up {len(rows)} tensors for the backward pass, {bytes_text(size)}"
        f"{f', in {place}' if place else ''}. If only what goes into each turn is kept, and the rest is made again in "
        f"the backward pass, the peak is {bytes_text(saved.bytes)} lower, for one more forward pass.",
        change="jax.lax.scan(jax.checkpoint(body), ...)",
        rows=by_size(recording, rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _place(recording: Recording, loop: Loop) -> str:
    """Where the user wrote it, as far as that is known."""
    stacks, program = recording.stacks, recording.program
    leaf = int(program.stack[loop.position]) if program is not None else -1
    own = int(nearest(stacks, ~of_frameworks(stacks))[leaf]) if leaf >= 0 else -1
    return frame_text(stacks, own) if own >= 0 else ""


def _inputs(carried: I64, slices: I64, turns: int) -> tuple[Bools, int]:
    """Which stacks hold what is carried into each turn, and how many bytes of such stacks are missing."""
    keep, missing = np.zeros(len(slices), dtype=bool), 0
    for size in carried.tolist():
        same = np.flatnonzero((slices == size) & ~keep)
        if len(same):
            keep[same[0]] = True
        else:
            missing += size * turns
    return keep, missing


def _made_again(recording: Recording, known: Passes, loop: Loop, dropped: I64) -> Change:
    """One turn's part of what is no longer stacked, in the backward loop: it is cut out of the stack there, or it is
    read in the middle of another operation, and then it comes on top."""
    rows = recording.allocations
    backward = known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)
    first, last = known.first_use(backward)[dropped], known.last_use(backward)[dropped]
    sliced = known.does(*SLICES)[np.minimum(first, known.length - 1)]
    begin = np.full(int((~sliced).sum()), first.min(initial=known.length))
    return Change(begin, last[~sliced] + 1, rows.size[dropped[~sliced]] // loop.turns)
