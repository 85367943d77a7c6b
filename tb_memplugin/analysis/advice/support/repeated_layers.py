"""Layers without names: what a loop in Python repeats, told from what the forward pass does again and again."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.support.passes import Layers, ProgramPasses
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames, nearest_frames
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.recording import Recording

REGULAR = 2  # of the operations that are there once for each turn, half or more are there once in each


def repeated_layers(recording: Recording, known: ProgramPasses) -> Layers | None:
    """The turns that keep most for the backward pass; None where nothing repeats.

    An operation is known again by its place in the source. The one that comes first of those done equally often
    begins each turn. In the backward pass a turn is where what it kept is read.
    """
    forward = np.flatnonzero(known.within(Pass.FORWARD))
    if recording.program is None or not len(forward):
        return None
    program = recording.program
    place = np.stack([program.scope.codes[forward], program.op.codes[forward], program.stack[forward]])
    _, key, count = np.unique(place, axis=1, return_inverse=True, return_counts=True)
    key = key.ravel()
    turns = _turns(recording, known, forward, count[key])
    if turns < 2:
        return None
    often = np.flatnonzero(count[key] == turns)
    begins = forward[key == key[often[0]]]
    turn = np.full(known.length, -1, dtype=np.int32)
    inside = forward[forward <= forward[often[-1]]]
    turn[inside] = np.searchsorted(begins, inside, side="right") - 1
    once_each = np.bincount(key[often] * turns + turn[forward[often]], minlength=len(count) * turns).reshape(-1, turns)
    regular = (once_each[np.unique(key[often])] == 1).all(axis=1)
    if REGULAR * int(regular.sum()) < len(regular):
        return None
    return _named(recording, forward, _with_backward(known, turn), int(begins[0]), turns)


def _turns(recording: Recording, known: ProgramPasses, forward: I64, count: I64) -> int:
    """How often the operations are done whose results take the most memory until the backward pass."""
    often = np.zeros(known.length, dtype=np.int64)
    often[forward] = count
    again = known.last_use(known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)) >= 0
    kept = np.flatnonzero(again & (known.made >= 0) & ~known.is_argument)
    times = often[known.made[kept]]
    size = np.bincount(times, recording.allocations.size[kept])
    size[:2] = 0
    return int(np.argmax(size)) if size.any() else 0


def _with_backward(known: ProgramPasses, turn: I32) -> I32:
    """What reads, in the backward pass, what a turn made for itself or was given, weights too, is that turn's."""
    row, use = known.uses
    made = np.where(known.made >= 0, turn[known.made], -1)
    reader = turn[use]
    other = (reader >= 0) & (reader != made[row])
    of_row = np.full(len(made), np.iinfo(np.int32).max)
    np.minimum.at(of_row, row[other], reader[other])
    of_row = np.where(of_row == np.iinfo(np.int32).max, made, of_row)
    again = (known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED))[use]
    np.maximum.at(turn, use[again], of_row[row[again]].astype(np.int32))
    return turn


def _named(recording: Recording, forward: I64, turn: I32, first: int, turns: int) -> Layers:
    """By the function whose code it is; where that does more than the turns, they are a loop in it."""
    program, stacks = recording.program, recording.stacks
    assert program is not None
    user = np.append(nearest_frames(stacks, ~framework_frames(stacks)), np.int32(-1))[program.stack]
    if user[first] < 0:
        return Layers("what repeats", f"{turns} repeats", "body", "what one of them does, as a function", turns, turn)
    text, code = frame_text(stacks, int(user[first])), stacks.function.codes[user[first]]
    outside = forward[(turn[forward] < 0) & (user[forward] >= 0)]
    if (stacks.function.codes[user[outside]] == code).any():
        loop = f"the loop in {text}"
        return Layers(loop, f"{turns} turns of {loop}", "body", "its body, as a function of its own", turns, turn)
    name = stacks.function[int(user[first])].rpartition(".")[2]
    return Layers(text, f"{turns} calls of {text}", name, "where it is called in turn", turns, turn)
