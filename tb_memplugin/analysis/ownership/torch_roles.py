"""What each tensor of a PyTorch snapshot is for: from who allocated it, who freed it, and which steps it outlived."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text

Mask = npt.NDArray[np.bool_]

OPTIMIZER = re.compile(r"(^|/)torch/optim/")
OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")  # what PyTorch itself marks, whoever wrote the optimizer
BACKWARD = re.compile(r"torch::autograd::(Engine|Node|generated)|\w+Backward\d*\b|^(_engine_run_)?backward$")
MODULE = re.compile(r"(^|/)torch/nn/(modules/module|parameter|init)\.py$")
CLEARING = "zero_grad"  # in an optimizer's file too, but no step
MOVES = {"_apply", "__new__", "_no_grad_normal_", "_no_grad_uniform_", "kaiming_uniform_"}  # functions there


@dataclass(frozen=True)
class _StackOrigins:
    """Per row, of the stack it was allocated in, or freed in."""

    known: Mask
    optimizer: Mask
    backward: Mask
    module: Mask


def torch_roles(recording: Recording) -> U8:
    """Per row of `allocations`: its Role; UNKNOWN where stacks and lifetimes do not tell. What the source says stands.

    Optimizer state is made in an optimizer's step and outlives it. A gradient is made in the backward pass and is
    there when the next step of the optimizer begins. An activation is made in neither and freed by the backward pass.
    A parameter is made by a module, or moved with it. What is freed where it was made is temporary.
    """
    rows, told = recording.allocations, recording.allocations.role
    made, freed = _origins(recording)
    begins, ends = optimizer_steps(recording)
    in_step = _in_interval(rows.start, begins, ends)
    stepping = made.optimizer | in_step
    backward = made.backward & ~stepping
    forward = made.known & ~stepping & ~backward & ~made.module
    outlives_step = rows.end > _next_mark(ends, rows.start, recording.length)
    meets_step = _next_mark(begins, rows.start, recording.length) < rows.end
    # Without an optimizer in sight, what the backward pass leaves behind is what an optimizer would read.
    left = meets_step if len(begins) else ~freed.backward
    role = np.select(
        [
            stepping & outlives_step,
            stepping,
            made.module & ~stepping & ~backward,
            backward & left,
            backward,
            forward & freed.backward,
            forward & freed.known & ~meets_step,
        ],
        [
            Role.OPTIMIZER_STATE,
            Role.TEMPORARY,
            Role.PARAMETER,
            Role.GRADIENT,
            Role.TEMPORARY,
            Role.ACTIVATION,
            Role.TEMPORARY,
        ],
        Role.UNKNOWN,
    )
    return np.where(told == Role.UNKNOWN, role, told).astype(np.uint8)


@memoize
def made_in_backward(recording: Recording) -> Mask:
    """Per row: whether it is made in the backward pass, as its stack tells, and in no step of an optimizer."""
    made, _ = _origins(recording)
    return made.backward & ~made.optimizer & ~_in_interval(recording.allocations.start, *optimizer_steps(recording))


def _origins(recording: Recording) -> tuple[_StackOrigins, _StackOrigins]:
    stack, free_stack = recording.allocations.stack, recording.free_stack
    freed = np.full_like(stack, -1) if free_stack is None else free_stack
    return _stack_origins(recording.stacks, stack), _stack_origins(recording.stacks, freed)


def _stack_origins(stacks: Stacks, leaf: I32) -> _StackOrigins:
    functions, files = stacks.function, stacks.file
    module = _matches(files, MODULE.search) & _matches(functions, MOVES.__contains__)
    clearing = _matches(functions, CLEARING.__eq__)
    own = np.stack([_matches(files, OPTIMIZER.search), _matches(functions, BACKWARD.search), module, clearing])
    optimizer, backward, module, clearing = np.c_[_self_or_caller(stacks, own), np.zeros(len(own), bool)][:, leaf]
    return _StackOrigins(leaf >= 0, optimizer & ~clearing, backward, module)


def _matches(column: Text, wanted: Callable[[str], object]) -> Mask:
    """Per row of a column, each distinct text looked at once."""
    found = [bool(wanted(column.strings[i])) for i in range(len(column.strings))]
    return np.array([*found, False])[column.codes]


def _self_or_caller(stacks: Stacks, own: Mask) -> Mask:
    """k x frames: whether a frame, or one that encloses it, is such a one."""
    count = len(stacks.parent)
    found = np.c_[own, np.zeros(len(own), bool)]
    above = np.r_[np.where(stacks.parent >= 0, stacks.parent, count), count]
    while (above < count).any():  # each round looks twice as far up
        found |= found[:, above]
        above = above[above]
    return np.asarray(found[:, :count])


@memoize
def optimizer_steps(recording: Recording) -> tuple[I64, I64]:
    """(first, last position) of each step of an optimizer: as marked, else as its allocations lie together."""
    spans, clock = recording.spans, recording.clock
    if spans is not None and clock is not None and len(spans):
        marked = _matches(spans.name, OPTIMIZER_STEP.search)
        if marked.any():
            begins = np.searchsorted(clock, spans.start_ns[marked], side="left")
            return begins, np.searchsorted(clock, spans.end_ns[marked], side="right") - 1
    made, freed = _origins(recording)
    event = np.r_[recording.allocations.start, recording.allocations.end]
    # What happened nobody knows where is neither in a step nor between two.
    told = np.r_[made.known, freed.known] & (event >= 0) & (event < recording.length)
    order = np.argsort(event, kind="stable")
    order = order[told[order]]
    position, here = event[order], np.r_[made.optimizer, freed.optimizer][order]
    turns = np.flatnonzero(np.diff(np.r_[False, here, False].astype(np.int8)))
    return position[turns[::2]], position[turns[1::2] - 1]


def _in_interval(position: I64, begins: I64, ends: I64) -> Mask:
    at = np.searchsorted(begins, position, side="right") - 1
    return np.asarray((at >= 0) & (position <= np.r_[ends, -1][at]))


def _next_mark(marks: I64, position: I64, never: int) -> I64:
    """The first mark at or after each position; `never` where there is none."""
    return np.asarray(np.r_[marks, never][np.searchsorted(marks, position, side="left")])
