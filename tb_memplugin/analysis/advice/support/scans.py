"""What a scan stacks up in its forward loop for its backward loop: one slice for each turn, all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.passes import Bools, ProgramPasses
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames, nearest_frames
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, remove_rows, rows_sharing_memory
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


class DroppedStacks(NamedTuple):
    """What a loop need not stack up."""

    loop: Loop
    rows: I64
    change: Change


def advise(recording: Recording, known: ProgramPasses) -> Iterator[Advice]:
    """A piece for each scan in the source, which may be run several times over."""
    written: dict[str | int, list[DroppedStacks]] = {}
    for loop in _forward_loops(recording, known):
        if dropped := _drop_stacks(recording, known, loop):
            written.setdefault(_scan_line(recording, loop) or loop.position, []).append(dropped)
    for place, found in written.items():
        if piece := _around_body(recording, place if isinstance(place, str) else "", found):
            yield piece


def _forward_loops(recording: Recording, known: ProgramPasses) -> Iterator[Loop]:
    table, values = recording.allocations, known.values
    op = table.op.strings
    whiles = [code for code in range(len(op)) if op[code] == "while"]
    forward = known.within(Pass.FORWARD)
    result = np.flatnonzero(np.isin(table.op.codes, whiles) & (known.made >= 0))
    result = result[forward[known.made[result]] & (values.floating[known.value[result]] != 0)]
    read_again = known.last_use(known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)) >= 0
    written = np.zeros(len(table), dtype=bool)  # a slice of it, in a forward pass
    slices = (known.made >= 0) & (forward & known.does(*UPDATES))[known.made]
    written[rows_sharing_memory(recording, np.flatnonzero(slices))] = True
    for position in np.unique(known.made[result]).tolist():
        here = result[known.made[result] == position]
        stack = read_again[here] & written[here]
        turns = [int(found[1]) for row in here[stack].tolist() if (found := LEADING.match(table.shape[row]))]
        if turns and len(set(turns)) == 1 and turns[0] > 1:
            yield Loop(position, here[stack], here[~stack], turns[0])


def _drop_stacks(recording: Recording, known: ProgramPasses, loop: Loop) -> DroppedStacks | None:
    table = recording.allocations
    keep, missing = _find_inputs(table.size[loop.carried], table.size[loop.stacks] // loop.turns, loop.turns)
    dropped = loop.stacks[~keep]
    if not len(dropped):
        return None
    own = lifetimes(recording).take(dropped[:1])
    stacked = Change(own.start, own.end, np.array([missing], dtype=np.int64))
    gone = remove_rows(recording, rows_sharing_memory(recording, dropped))
    return DroppedStacks(loop, dropped, combine(gone, stacked, _recomputed_bytes(recording, known, loop, dropped)))


def _around_body(recording: Recording, place: str, found: list[DroppedStacks]) -> Advice | None:
    saved = saving(recording, combine(*(dropped.change for dropped in found)))
    if saved is None:
        return None
    rows = np.concatenate([dropped.rows for dropped in found])
    size = int(recording.allocations.size[rows].sum())
    turns = " and ".join(str(count) for count in sorted({dropped.loop.turns for dropped in found}))
    scan = f"a scan over {turns} turns" if len(found) == 1 else f"{len(found)} scans over {turns} turns"
    stacks_up = "forward loop stacks" if len(found) == 1 else "forward loops stack"
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize the body of {scan}",
        sentence=f"The scan's {stacks_up} up {len(rows)} tensors for the backward pass, {bytes_text(size)}"
        f"{f', in {place}' if place else ''}. If only what goes into each turn is kept, and the rest is made again in "
        f"the backward pass, the peak is {bytes_text(saved.bytes)} lower, for one more forward pass.",
        change="jax.lax.scan(jax.checkpoint(body), ...)",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _scan_line(recording: Recording, loop: Loop) -> str:
    """Where the user wrote it, as far as that is known."""
    stacks, program = recording.stacks, recording.program
    leaf = int(program.stack[loop.position]) if program is not None else -1
    own = int(nearest_frames(stacks, ~framework_frames(stacks))[leaf]) if leaf >= 0 else -1
    return frame_text(stacks, own) if own >= 0 else ""


def _find_inputs(carried: I64, slices: I64, turns: int) -> tuple[Bools, int]:
    """Which stacks hold what is carried into each turn, and how many bytes of such stacks are missing."""
    keep, missing = np.zeros(len(slices), dtype=bool), 0
    for size in carried.tolist():
        same = np.flatnonzero((slices == size) & ~keep)
        if len(same):
            keep[same[0]] = True
        else:
            missing += size * turns
    return keep, missing


def _recomputed_bytes(recording: Recording, known: ProgramPasses, loop: Loop, dropped: I64) -> Change:
    """One turn's part of what is no longer stacked, in the backward loop: it is cut out of the stack there, or it is
    read in the middle of another operation, and then it comes on top."""
    rows = recording.allocations
    backward = known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)
    first, last = known.first_use(backward)[dropped], known.last_use(backward)[dropped]
    sliced = known.does(*SLICES)[np.minimum(first, known.length - 1)]
    begin = np.full(int((~sliced).sum()), first.min(initial=known.length))
    return Change(begin, last[~sliced] + 1, rows.size[dropped[~sliced]] // loop.turns)
