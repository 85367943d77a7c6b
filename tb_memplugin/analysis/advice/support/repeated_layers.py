"""Layers without names: code that the forward pass runs several times, found by the call stacks of its operations."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.support.call_sites import CallSite, Operations, call_site, one_after_another
from tb_memplugin.analysis.advice.support.layer_code import called_functions, has_other_lines, layer_code, leaves_below
from tb_memplugin.analysis.advice.support.passes import Layers, ProgramPasses
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.model.arrays import F64, I32, I64, Mask
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text


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
    later = np.flatnonzero(backward & named)
    often_later = stack[later[_sources(passes, program.op, stack, later)[1] >= max(turns - 1, 2)]]
    weight, made = _reads_weight(passes, program.op)[forward], _largest_made(passes)[forward]
    operations = Operations(stack[forward], count, kept[forward], weight, made)
    site = call_site(stacks, operations, turns, often_later) if turns else None
    if site is None or framework_frames(stacks)[site.frames].all():
        return None
    key_later, count_later = _sources(passes, program.op, stack, later)
    instance, found = np.full(passes.length, -1, dtype=np.int32), list[Layers]()
    for one in one_after_another(stacks, operations, site):
        turn = np.full(passes.length, -1, dtype=np.int32)
        below = np.isin(stack[forward], leaves_below(stacks, stack[forward], one.frames))
        turns = _turns(np.where(below, count, 0), kept[forward]) or turns
        for positions, sources, often, reverse in ((forward, key, count, False), (later, key_later, count_later, True)):
            inside = np.isin(stack[positions], leaves_below(stacks, stack[positions], one.frames))
            turn[positions] = _number_turns(sources, np.where(inside, often, 0), turns, reverse)
        instance = np.where(turn >= 0, turn + sum(layers.count for layers in found), instance).astype(np.int32)
        found.append(_named(recording, one, stack[forward[turn[forward] >= 0]], turn, turns))
    name, several, code = (
        list(dict.fromkeys(texts)) for texts in zip(*((one.name, one.several, one.code) for one in found), strict=True)
    )
    total = sum(layers.count for layers in found)
    return Layers(" and ".join(name), " and ".join(several), "\n".join(code), total, instance[passes.named_by])


def _sources(passes: ProgramPasses, op: Text, stack: I32, positions: I64) -> tuple[I64, I64]:
    """Return a number for each position's operation in the source, and how many positions have the same."""
    key = np.zeros(len(positions), dtype=np.int64)
    for column in (passes.scope_code, op.codes, stack):
        part = column[positions].astype(np.int64) - column.min(initial=0)
        # Renumbered each time, so that the key (positions x 32 bits) never overflows.
        _, key = np.unique(key * (part.max(initial=0) + 1) + part, return_inverse=True)
    return key, np.bincount(key)[key]


def _turns(count: I64, kept: F64) -> int:
    """Return how often the operations run that keep the most; 0 if none runs twice."""
    size = np.append(np.bincount(count, kept), 0.0)
    size[:2] = 0
    most = int(np.argmax(size))
    # The first or the last turn is often fused differently.
    return most + (size[most + 1] > 0) if size.any() else 0


def _reads_weight(passes: ProgramPasses, op: Text) -> Mask:
    """Mark the positions that read an argument of real numbers, such as a weight, or a copy of one."""
    values = passes.values
    reader = values.used_value
    producer = values.producer[reader]
    of_argument = (values.argument[reader] >= 0) | (producer >= 0) & op.isin({"parameter"})[passes.named_by[producer]]
    found = np.zeros(passes.length, dtype=bool)
    found[values.use[of_argument & (values.floating[reader] != 0)]] = True
    return found


def _largest_made(passes: ProgramPasses) -> I64:
    """Return the number of elements of the largest value that each position computes."""
    values = passes.values
    found = np.zeros(passes.length, dtype=np.int64)
    known = values.producer >= 0
    np.maximum.at(found, values.producer[known], values.elements[known])
    return found


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
    """Name the layers after the function that the line calls, or after the loop if it contains other code too.

    A line that computes a layer is the layer's whole function, unless that function has other lines.
    """
    stacks = recording.stacks
    called = called_functions(stacks, leaves, site.frames)
    if (
        len(site.frames) == 1
        and len(called) == 1
        and not (called[0] in site.frames and has_other_lines(stacks, called[0]))
    ):
        text = frame_text(stacks, called[0])
        code = layer_code(stacks, called[0], leaves, "where the layers are called")
        return Layers(text, f"{turns:,} calls of {text}", code, turns, turn)
    loop = f"the loop in {frame_text(stacks, min(site.frames, key=lambda frame: int(stacks.line[frame])))}"
    code = "body = jax.checkpoint(body)  # the loop's body, as a function"
    return Layers(loop, f"{turns:,} iterations of {loop}", code, turns, turn)
