"""Layers without names: code that the forward pass runs several times, found by the call stacks of its operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.support.passes import Layers, ProgramPasses
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.model.arrays import F64, I32, I64, Mask
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text

ALMOST_ALL = 0.999  # of what is kept; a fusion may have the call stack of a line of another layer


class CallSite(NamedTuple):
    """Lines of one function in one call, each of which runs as often as the others."""

    frames: list[int]
    depth: int
    kept: float  # bytes that its operations keep for the backward pass


def repeated_layers(recording: Recording, passes: ProgramPasses) -> Layers | None:
    """Return the calls or iterations that keep the most for the backward pass; None if nothing repeats.

    Operations with the same call stack and name are one operation of the source, which runs several times. A line that
    runs a layer is one below which all operations repeat as often; of several, the innermost is taken. A position of
    the backward pass belongs to the layer whose values it reads.
    """
    program, stacks = recording.program, recording.stacks
    backward = passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    if program is None or not backward.any():
        return None
    named = passes.named_by == np.arange(passes.length)
    forward = np.flatnonzero(passes.within(Pass.FORWARD) & named)
    if not len(forward):
        return None
    stack = program.stack
    kept = np.zeros(passes.length)
    rows = np.flatnonzero((passes.last_use(backward) >= 0) & (passes.made >= 0) & ~passes.is_argument)
    np.add.at(kept, passes.named_by[passes.made[rows]], recording.allocations.size[rows])
    key, count = _sources(passes, program.op, stack, forward)
    turns = _turns(count, kept[forward])
    reads_weight = _reads_float_argument(passes)[forward]
    site = _call_site(stacks, stack[forward], count, kept[forward], turns, reads_weight) if turns else None
    if site is None:
        return None
    turn = np.full(passes.length, -1, dtype=np.int32)
    for positions, reverse in ((forward, False), (np.flatnonzero(backward & named), True)):
        inside = np.isin(stack[positions], _leaves_below(stacks, stack[positions], site.frames))
        key, count = _sources(passes, program.op, stack, positions)
        turn[positions] = _number_turns(key, np.where(inside, count, 0), turns, reverse)
    below = stack[forward[turn[forward] >= 0]]
    return _named(recording, site, below, turn[passes.named_by], turns)


def _sources(passes: ProgramPasses, op: Text, stack: I32, positions: I64) -> tuple[I64, I64]:
    """Return a number for each position's operation in the source, and how many positions have the same."""
    source = np.stack([passes.scope_code[positions], op.codes[positions], stack[positions]])
    _, key, count = np.unique(source, axis=1, return_inverse=True, return_counts=True)
    return key.ravel(), count[key.ravel()]


def _turns(count: I64, kept: F64) -> int:
    """Return how often the operations run that keep the most; 0 if none runs twice."""
    size = np.append(np.bincount(count, kept), 0.0)
    size[:2] = 0
    most = int(np.argmax(size))
    # The first or the last turn is often fused differently.
    return most + (size[most + 1] > 0) if size.any() else 0


def _reads_float_argument(passes: ProgramPasses) -> Mask:
    """Mark the positions that read an argument of real numbers, such as a weight."""
    row, use = passes.uses
    found = np.zeros(passes.length, dtype=bool)
    found[use[(passes.is_argument & (passes.values.floating[passes.value] != 0))[row]]] = True
    return found


def _call_site(stacks: Stacks, leaf: I32, count: I64, kept: F64, turns: int, reads_weight: Mask) -> CallSite | None:
    """Return the innermost line that runs `turns` times and below which the most is kept, or lines of one loop.

    A line runs once if its operations are few and come after all that repeat, or come before them and read a weight.
    Other operations that occur less often are those of the first or the last turn, which the compiler fuses
    differently, and constants such as masks, which it computes once.
    """
    at = np.flatnonzero(count == turns)
    leaves, of_leaf = np.unique(leaf, return_inverse=True)
    often = np.zeros(len(leaves), dtype=np.int64)
    np.maximum.at(often, of_leaf, count)
    outside = np.ones(len(leaves), dtype=bool)
    outside[of_leaf[at[0] : at[-1] + 1]] = False
    outside[of_leaf[: at[0]][~reads_weight[: at[0]]]] = False
    once = (often < max(turns - 1, 2)) & outside
    size = np.bincount(of_leaf, kept, len(leaves))
    below: dict[int, float] = {}
    depth: dict[int, int] = {}
    runs_once: set[int] = set()
    for frame, is_single, bytes_kept in zip(leaves.tolist(), once.tolist(), size.tolist(), strict=True):
        chain = list(_callers(stacks, frame))
        for steps, caller in enumerate(chain):
            depth[caller] = len(chain) - steps
            below[caller] = below.get(caller, 0.0) + bytes_kept
        runs_once.update(chain if is_single else ())
    lines = [CallSite([frame], depth[frame], kept) for frame, kept in below.items() if frame not in runs_once]
    loops: dict[tuple[int, int, int], CallSite] = {}
    for (frame,), steps, bytes_kept in lines:
        where = (int(stacks.parent[frame]), int(stacks.function.codes[frame]), int(stacks.file.codes[frame]))
        before = loops.get(where, CallSite([], steps, 0.0))
        loops[where] = CallSite([*before.frames, frame], steps, before.kept + bytes_kept)
    largest = max((site.kept for site in loops.values()), default=0.0)
    best = [site for site in lines if site.kept >= ALMOST_ALL * largest] or list(loops.values())
    return max((s for s in best if s.kept >= ALMOST_ALL * largest > 0), key=lambda s: s.depth, default=None)


def _callers(stacks: Stacks, frame: int) -> Iterator[int]:
    """Yield the frame and its callers, innermost first. A cycle in a damaged file ends the walk."""
    seen: set[int] = set()
    while 0 <= frame < len(stacks.parent) and frame not in seen:
        seen.add(frame)
        yield frame
        frame = int(stacks.parent[frame])


def _leaves_below(stacks: Stacks, leaf: I32, frames: list[int]) -> I64:
    wanted = set(frames)
    found = [one for one in np.unique(leaf).tolist() if not wanted.isdisjoint(_callers(stacks, one))]
    return np.array(found, dtype=np.int64)


def _number_turns(key: I64, count: I64, turns: int, reverse: bool) -> I32:
    """Number each position with a count by the turn that it is in; the backward pass runs the turns in reverse.

    An operation that runs once in each turn is numbered by its occurrence; others by the turns that began before them.
    """
    turn = np.full(len(key), -1, dtype=np.int32)
    once_each = np.flatnonzero(count == turns)
    if not len(once_each):
        return turn
    order = np.lexsort((once_each, key[once_each]))
    turn[once_each[order]] = np.arange(len(order)) % turns
    first = np.full(turns, len(key))
    np.minimum.at(first, turn[once_each], once_each)
    others = np.flatnonzero((count > 0) & (count != turns))
    begun = np.searchsorted(np.minimum.accumulate(first[::-1])[::-1], others, side="right") - 1
    turn[others] = np.maximum(begun, 0)
    return np.where((turn >= 0) & reverse, turns - 1 - turn, turn)


def _named(recording: Recording, site: CallSite, leaves: I32, turn: I32, turns: int) -> Layers:
    """Name the layers after the function that the line calls, or after the loop if it contains other code too."""
    stacks = recording.stacks
    called = _called(stacks, leaves, site.frames)
    if len(site.frames) == 1 and len(called) == 1:
        frame = called.pop()
        name = stacks.function[frame].rpartition(".")[2]
        text = frame_text(stacks, frame)
        return Layers(text, f"{turns} calls of {text}", name, "where the layers are called", turns, turn)
    loop = f"the loop in {frame_text(stacks, min(site.frames, key=lambda frame: int(stacks.line[frame])))}"
    return Layers(loop, f"{turns} iterations of {loop}", "body", "the loop's body, as a function", turns, turn)


def _called(stacks: Stacks, leaves: I32, frames: list[int]) -> set[int]:
    """Return a user's frame of each function that these lines call; the lines' own code counts as the lines."""
    framework: Mask = framework_frames(stacks)
    wanted, found = set(frames), dict[tuple[int, int], int]()
    for leaf in np.unique(leaves).tolist():
        inner = list(_callers(stacks, leaf))
        outside = next((i for i, frame in enumerate(inner) if frame in wanted), 0)
        users = [frame for frame in inner[:outside] if not framework[frame]] or [inner[outside]]
        frame = users[-1]
        found.setdefault((int(stacks.function.codes[frame]), int(stacks.file.codes[frame])), frame)
    return set(found.values())
