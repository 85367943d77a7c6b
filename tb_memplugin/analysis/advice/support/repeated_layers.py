"""Layers without names: iterations of a Python loop, found by repeated operations in the forward pass."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.support.passes import Layers, ProgramPasses
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames, nearest_frames
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.recording import Recording

MIN_REGULAR_SHARE = 2  # of the operations that occur once per iteration on average, half must occur once in each


def repeated_layers(recording: Recording, passes: ProgramPasses) -> Layers | None:
    """Return the iterations that keep the most for the backward pass; None if nothing repeats.

    Operations are matched by their source location. Of operations that repeat equally often, the first one begins each
    iteration. A position of the backward pass belongs to the iteration whose values it reads.
    """
    forward = np.flatnonzero(passes.within(Pass.FORWARD))
    if recording.program is None or not len(forward):
        return None
    program = recording.program
    place = np.stack([program.scope.codes[forward], program.op.codes[forward], program.stack[forward]])
    _, key, count = np.unique(place, axis=1, return_inverse=True, return_counts=True)
    key = key.ravel()
    turns = _turns(recording, passes, forward, count[key])
    if turns < 2:
        return None
    often = np.flatnonzero(count[key] == turns)
    begins = forward[key == key[often[0]]]
    turn = np.full(passes.length, -1, dtype=np.int32)
    inside = forward[forward <= forward[often[-1]]]
    turn[inside] = np.searchsorted(begins, inside, side="right") - 1
    once_each = np.bincount(key[often] * turns + turn[forward[often]], minlength=len(count) * turns).reshape(-1, turns)
    regular = (once_each[np.unique(key[often])] == 1).all(axis=1)
    if MIN_REGULAR_SHARE * int(regular.sum()) < len(regular):
        return None
    return _named(recording, forward, _with_backward(passes, turn), int(begins[0]), turns)


def _turns(recording: Recording, passes: ProgramPasses, forward: I64, count: I64) -> int:
    """Return how often the operations repeat whose results take the most memory until the backward pass."""
    often = np.zeros(passes.length, dtype=np.int64)
    often[forward] = count
    again = passes.last_use(passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)) >= 0
    kept = np.flatnonzero(again & (passes.made >= 0) & ~passes.is_argument)
    times = often[passes.made[kept]]
    size = np.bincount(times, recording.allocations.size[kept])
    size[:2] = 0
    return int(np.argmax(size)) if size.any() else 0


def _with_backward(passes: ProgramPasses, turn: I32) -> I32:
    """Assign each backward position to the iteration whose values or inputs, weights included, it reads."""
    row, use = passes.uses
    made = np.where(passes.made >= 0, turn[passes.made], -1)
    reader = turn[use]
    other = (reader >= 0) & (reader != made[row])
    of_row = np.full(len(made), np.iinfo(np.int32).max)
    np.minimum.at(of_row, row[other], reader[other])
    of_row = np.where(of_row == np.iinfo(np.int32).max, made, of_row)
    again = (passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED))[use]
    np.maximum.at(turn, use[again], of_row[row[again]].astype(np.int32))
    return turn


def _named(recording: Recording, forward: I64, turn: I32, first: int, turns: int) -> Layers:
    """Name the layers after the function that contains them, or after a loop in it if it contains other code too."""
    program, stacks = recording.program, recording.stacks
    assert program is not None
    user = np.append(nearest_frames(stacks, ~framework_frames(stacks)), np.int32(-1))[program.stack]
    if user[first] < 0:
        comment = "the repeated code, as a function"
        return Layers("repeated operations", f"{turns} repetitions", "body", comment, turns, turn)
    text, code = frame_text(stacks, int(user[first])), stacks.function.codes[user[first]]
    outside = forward[(turn[forward] < 0) & (user[forward] >= 0)]
    if (stacks.function.codes[user[outside]] == code).any():
        loop = f"the loop in {text}"
        return Layers(loop, f"{turns} iterations of {loop}", "body", "the loop's body, as a function", turns, turn)
    name = stacks.function[int(user[first])].rpartition(".")[2]
    return Layers(text, f"{turns} calls of {text}", name, "where the layers are called", turns, turn)
