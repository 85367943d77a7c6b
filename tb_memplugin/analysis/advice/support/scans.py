"""Values that a scan's forward loop stacks for its backward loop, one slice per iteration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames, nearest_frames
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, remove_rows, rows_sharing_memory
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

UPDATES = ("dynamic_update_slice",)
SLICES = ("dynamic_slice",)
LEADING = re.compile(r"\w+\[(\d{1,18})[,\]]")


class Loop(NamedTuple):
    """A forward loop: its stacked rows for the backward pass, and the rows that it carries between iterations."""

    position: int  # of the loop's instruction
    stacks: I64
    carry: I64
    iterations: int


class DroppedStacks(NamedTuple):
    """Stacked rows that a loop can recompute instead."""

    loop: Loop
    rows: I64
    change: Change


def advise(recording: Recording, passes: ProgramPasses) -> Iterator[Advice]:
    """Yield a piece for each scan in the source, which may run several times."""
    written: dict[str | int, list[DroppedStacks]] = {}
    for loop in _forward_loops(recording, passes):
        if dropped := _drop_stacks(recording, passes, loop):
            written.setdefault(_scan_line(recording, loop) or loop.position, []).append(dropped)
    for place, found in written.items():
        if piece := _around_body(recording, place if isinstance(place, str) else "", found):
            yield piece


def _forward_loops(recording: Recording, passes: ProgramPasses) -> Iterator[Loop]:
    table, values = recording.allocations, passes.values
    forward = passes.within(Pass.FORWARD)
    result = np.flatnonzero(table.op.isin({"while"}) & (passes.made >= 0))
    result = result[forward[passes.made[result]] & (values.floating[passes.value[result]] != 0)]
    read_again = passes.last_use(passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)) >= 0
    written = np.zeros(len(table), dtype=bool)  # rows of which a forward pass writes a slice
    slices = (passes.made >= 0) & (forward & passes.does(*UPDATES))[passes.made]
    written[rows_sharing_memory(recording, np.flatnonzero(slices))] = True
    for position in np.unique(passes.made[result]).tolist():
        here = result[passes.made[result] == position]
        stack = read_again[here] & written[here]
        iterations = [int(found[1]) for row in here[stack].tolist() if (found := LEADING.match(table.shape[row]))]
        if iterations and len(set(iterations)) == 1 and iterations[0] > 1:
            yield Loop(position, here[stack], here[~stack], iterations[0])


def _drop_stacks(recording: Recording, passes: ProgramPasses, loop: Loop) -> DroppedStacks | None:
    table = recording.allocations
    keep, missing = _find_inputs(table.size[loop.carry], table.size[loop.stacks] // loop.iterations, loop.iterations)
    dropped = loop.stacks[~keep]
    if not len(dropped):
        return None
    own = lifetimes(recording).take(dropped[:1])
    stacked = Change(own.start, own.end, np.array([missing], dtype=np.int64))
    gone = remove_rows(recording, rows_sharing_memory(recording, dropped))
    return DroppedStacks(loop, dropped, combine(gone, stacked, _recomputed_bytes(recording, passes, loop, dropped)))


def _around_body(recording: Recording, place: str, found: list[DroppedStacks]) -> Advice | None:
    saved = saving(recording, combine(*(dropped.change for dropped in found)))
    if saved is None:
        return None
    rows = np.concatenate([dropped.rows for dropped in found])
    size = int(recording.allocations.size[rows].sum())
    counts = " and ".join(str(count) for count in sorted({dropped.loop.iterations for dropped in found}))
    scan = f"a scan over {counts} iterations" if len(found) == 1 else f"{len(found)} scans over {counts} iterations"
    loops = agree(len(found), "forward loop stacks", "forward loops stack")
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize the body of {scan}",
        sentence=f"The scan's {loops} {counted(len(rows), 'tensor')} for the backward pass, {bytes_text(size)}"
        f"{f', in {place}' if place else ''}. Keeping only each iteration's inputs, and recomputing the rest, "
        f"{saved.effect}. The cost is one more forward pass.",
        change="jax.lax.scan(jax.checkpoint(body), ...)",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
    )


def _scan_line(recording: Recording, loop: Loop) -> str:
    """Return the user's line of the scan, empty if unknown."""
    stacks, program = recording.stacks, recording.program
    leaf = int(program.stack[loop.position]) if program is not None else -1
    own = int(nearest_frames(stacks, ~framework_frames(stacks))[leaf]) if leaf >= 0 else -1
    return frame_text(stacks, own) if own >= 0 else ""


def _find_inputs(carry: I64, slices: I64, iterations: int) -> tuple[Mask, int]:
    """Mark the stacks of each iteration's inputs, and return the bytes of inputs that are not stacked yet."""
    keep, missing = np.zeros(len(slices), dtype=bool), 0
    for size in carry.tolist():
        same = np.flatnonzero((slices == size) & ~keep)
        if len(same):
            keep[same[0]] = True
        else:
            missing += size * iterations
    return keep, missing


def _recomputed_bytes(recording: Recording, passes: ProgramPasses, loop: Loop, dropped: I64) -> Change:
    """Return the memory in the backward loop for one iteration's slices of the dropped stacks.

    If the loop slices the stack first, the slice has memory already. If another operation reads the stack directly, the
    recomputed slice is added.
    """
    rows = recording.allocations
    backward = passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    first, last = passes.first_use(backward)[dropped], passes.last_use(backward)[dropped]
    sliced = passes.does(*SLICES)[np.minimum(first, passes.length - 1)]
    begin = np.full(int((~sliced).sum()), first.min(initial=passes.length))
    return Change(begin, last[~sliced] + 1, rows.size[dropped[~sliced]] // loop.iterations)
