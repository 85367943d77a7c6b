"""Roles of a PyTorch snapshot's tensors, from stacks and the steps they outlived, or the profiler's memory timeline."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64, U8, Mask, largest_per
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks

# The profiler and the allocator timestamp an allocation at two points of the same call, microseconds apart.
NEAR_NS = 1_000_000


@memoize
def recorded_roles(recording: Recording) -> U8:
    """Return the Role of each row of `allocations` that the source records, else a timeline of the same run.

    An allocation matches the timeline's allocation of the same size that is nearest in time, within a millisecond.
    """
    if not recording.timelines:
        return recording.allocations.role
    role = recording.allocations.role.copy()
    for timeline in recording.timelines:
        match = _match_rows(recording, timeline)
        matched = (match >= 0) & (role == Role.UNKNOWN)
        role[matched] = timeline.allocations.role[match[matched]]
    return role


def _match_rows(snapshot: Recording, timeline: Recording) -> I64:
    """Return the matching row of the timeline for each row of the snapshot, -1 for none."""
    found = np.full(len(snapshot.allocations), -1)
    row, time = _allocation_times(snapshot)
    other, other_time = _allocation_times(timeline)
    if not len(row) or not len(other):
        return found
    size, other_size = snapshot.allocations.size[row], timeline.allocations.size[other]
    order = np.lexsort((other_time, other_size))
    other, other_time, other_size = other[order], other_time[order], other_size[order]
    # One sort key of size, then time. The times of one run are close together, so the key rarely overflows.
    first = min(int(time.min()), int(other_time.min()))
    sizes, code = np.unique(np.r_[other_size, size], return_inverse=True)
    width = max(int(time.max()), int(other_time.max())) - first + 1
    if width > 2**62 // max(len(sizes), 1):
        return found
    keys, wanted = code[: len(other)] * width + other_time - first, code[len(other) :] * width + time - first
    after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(keys[before] - wanted) < np.abs(keys[after] - wanted), before, after)
    close = (other_size[nearest] == size) & (np.abs(other_time[nearest] - time) <= NEAR_NS)
    found[row[close]] = other[nearest[close]]
    return found


def _allocation_times(recording: Recording) -> tuple[I64, I64]:
    """Return the rows that were allocated in the recording, and their times in nanoseconds since 1970."""
    clock, capture_info = recording.clock, recording.capture_info
    if clock is None or capture_info is None or capture_info.time_ns is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    row = np.flatnonzero(recording.allocations.start >= 0)
    return row, clock[recording.allocations.start[row]] + capture_info.time_ns


def older_parameters(recording: Recording, role: U8) -> Mask:
    """Mark rows of unknown role that are older than the trace and match the gradients one to one, by size.

    There must be as many rows of a size, live while gradients are made, as there are gradients of that size without a
    known parameter. If there are more, some may be optimizer state or gradients of earlier steps: all stay unknown.
    """
    rows = recording.allocations
    gradient = role == Role.GRADIENT
    nothing: Mask = np.zeros(len(rows), dtype=bool)
    if not gradient.any():
        return nothing
    stays = rows.end > int(rows.start[gradient].max())
    older = (rows.start < 0) & stays & (role == Role.UNKNOWN)
    sizes, size = np.unique(rows.requested, return_inverse=True)
    wanted = _most_at_once(size[gradient], rows.start[gradient], rows.end[gradient], len(sizes))
    wanted -= np.bincount(size[stays & (role == Role.PARAMETER)], minlength=len(sizes))
    matches = np.bincount(size[older], minlength=len(sizes)) == wanted
    return np.asarray(older & matches[size])


def _most_at_once(size: I64, start: I64, end: I64, sizes: int) -> I64:
    """Return the largest number of rows of each size that are live at once."""
    change = np.repeat(np.array([1, -1]), len(size))
    group, position = np.r_[size, size], np.r_[start, end]
    order = np.lexsort((change, position, group))  # at one position, rows end before others begin
    live, group = np.cumsum(change[order]), group[order]  # each group ends at 0
    return largest_per(group, live, sizes)


OPTIMIZER = re.compile(r"(^|/)torch/optim/")
OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")  # marked by PyTorch for every optimizer, custom ones included
BACKWARD = re.compile(r"torch::autograd::(Engine|Node|generated)|\b\w+Backward\d*\b|^(_engine_run_)?backward$")
MODULE = re.compile(r"(^|/)torch/nn/(modules/module|parameter|init)\.py$")
# cuBLAS's, one for each stream; the first name is of PyTorch up to 2.6
WORKSPACE = re.compile(r"^at::cuda::(getNewWorkspace|setWorkspaceForHandle|getCUDABlasLtWorkspace)\b")
CLEARING = "zero_grad"  # defined in an optimizer's file, but not part of a step
# Functions in MODULE's files that create or move parameters.
PARAMETER_FUNCTIONS = {"_apply", "__new__", "_no_grad_normal_", "_no_grad_uniform_", "kaiming_uniform_"}


class _StackOrigins(NamedTuple):
    """The kinds of code on stacks, one entry for each frame and its callers, or for each row's stack."""

    known: Mask
    optimizer: Mask
    backward: Mask
    module: Mask
    workspace: Mask
    clearing: Mask

    def take(self, leaf: I32) -> _StackOrigins:
        """Return the entry of each leaf; the last entry is for no stack, -1."""
        return _StackOrigins(*(mask[leaf] for mask in self))

    def in_backward(self, rows: Mask) -> _StackOrigins:
        """Add rows to those of the backward pass."""
        return self._replace(known=self.known | rows, backward=self.backward | rows)


def torch_roles(recording: Recording) -> U8:
    """Return the Role of each row of `allocations`, UNKNOWN if stacks and lifetimes do not determine it.

    Roles recorded by the source, or by a memory timeline of the same run, are kept. Otherwise:
    - optimizer state is allocated in an optimizer's step and outlives it;
    - a gradient is allocated in the backward pass, and is still live when the next optimizer step begins or is freed
      by `zero_grad`, as steps of fused optimizers leave no trace;
    - an activation is allocated in neither and freed by the backward pass;
    - a parameter is allocated by a module, or moved with it, or is older than the trace and matches a gradient;
    - a tensor that is freed in the pass that allocated it is temporary, and so is a library's workspace.
    """
    rows, recorded = recording.allocations, recorded_roles(recording)
    made, freed = _origins(recording)
    begins, ends = optimizer_steps(recording)
    in_step = _in_interval(rows.start, begins, ends)
    stepping = made.optimizer | in_step
    backward = made.backward & ~stepping
    forward = made.known & ~stepping & ~backward & ~made.module
    outlives_step = rows.end > _next_mark(ends, rows.start, recording.length)
    meets_step = _next_mark(begins, rows.start, recording.length) < rows.end
    # Without an optimizer in the recording, tensors that outlive the backward pass count as gradients.
    left = meets_step if len(begins) else ~freed.backward
    decided = (
        (made.workspace, Role.TEMPORARY),
        (stepping & outlives_step, Role.OPTIMIZER_STATE),
        (stepping, Role.TEMPORARY),
        (made.module & ~stepping & ~backward, Role.PARAMETER),
        (backward & (left | freed.clearing), Role.GRADIENT),
        (backward, Role.TEMPORARY),
        (forward & freed.backward, Role.ACTIVATION),
        (forward & freed.known & ~meets_step, Role.TEMPORARY),
    )
    role = np.select([rows for rows, _ in decided], [of_rows for _, of_rows in decided], Role.UNKNOWN)
    found = np.where(recorded == Role.UNKNOWN, role, recorded).astype(np.uint8)
    found[older_parameters(recording, found)] = Role.PARAMETER
    return found


@memoize
def made_in_backward(recording: Recording) -> Mask:
    """Mark the rows whose stack is in the backward pass and that are not allocated in an optimizer step."""
    made, _ = _origins(recording)
    return made.backward & ~made.optimizer & ~_in_interval(recording.allocations.start, *optimizer_steps(recording))


def _origins(recording: Recording) -> tuple[_StackOrigins, _StackOrigins]:
    """Return the kinds of code that allocated each row, and that freed it.

    Stacks of Python alone, as with `_record_memory_history(stacks="python")`, are empty in the threads of the backward
    pass: there, an event without a stack belongs to it.
    """
    rows, free_stack = recording.allocations, recording.free_stack
    freed = np.full_like(rows.stack, -1) if free_stack is None else free_stack
    origins = _stack_origins(recording)
    made, freed_by = origins.take(rows.stack), origins.take(freed)
    if not origins.backward.any() or (recording.stacks.file.codes < 0).any():  # not of Python alone
        return made, freed_by
    return (
        made.in_backward((rows.stack < 0) & (rows.start >= 0)),
        freed_by.in_backward((freed < 0) & (rows.end < recording.length)),
    )


@memoize
def _stack_origins(recording: Recording) -> _StackOrigins:
    """Return the kinds of code on the stack of each frame, with a last row for rows without a stack."""
    functions, files = recording.stacks.function, recording.stacks.file
    module = files.where(MODULE.search) & functions.where(PARAMETER_FUNCTIONS.__contains__)
    clearing = functions.where(CLEARING.__eq__)
    workspace = functions.where(WORKSPACE.search)
    own = np.stack([files.where(OPTIMIZER.search), functions.where(BACKWARD.search), module, clearing, workspace])
    on_stack = np.c_[_self_or_caller(recording.stacks, own), np.zeros(len(own), bool)]
    optimizer, backward, module, clearing, workspace = on_stack
    known = np.r_[np.ones(len(optimizer) - 1, bool), False]
    return _StackOrigins(known, optimizer & ~clearing, backward, module, workspace, clearing)


def _self_or_caller(stacks: Stacks, own: Mask) -> Mask:
    """Return a k x frames mask: whether the frame itself or one of its callers is marked in `own`."""
    count = len(stacks.parent)
    found = np.c_[own, np.zeros(len(own), bool)]
    caller = np.r_[np.where(stacks.parent >= 0, stacks.parent, count), count]
    while (caller < count).any():  # pointer doubling: each round looks twice as far up
        found |= found[:, caller]
        caller = caller[caller]
    return np.asarray(found[:, :count])


@memoize
def optimizer_steps(recording: Recording) -> tuple[I64, I64]:
    """Return the first and last positions of each optimizer step: as marked, else of a run of its allocations."""
    spans, clock = recording.spans, recording.clock
    if spans is not None and clock is not None and len(spans):
        marked = spans.name.where(OPTIMIZER_STEP.search)
        if marked.any():
            begins = np.searchsorted(clock, spans.start_ns[marked], side="left")
            return begins, np.searchsorted(clock, spans.end_ns[marked], side="right") - 1
    made, freed = _origins(recording)
    event = np.r_[recording.allocations.start, recording.allocations.end]
    # Events without a stack neither extend a step nor end one.
    usable = np.r_[made.known, freed.known] & (event >= 0) & (event < recording.length)
    order = np.argsort(event, kind="stable")
    order = order[usable[order]]
    position, in_step = event[order], np.r_[made.optimizer, freed.optimizer][order]
    edges = np.flatnonzero(np.diff(np.r_[False, in_step, False].astype(np.int8)))
    return position[edges[::2]], position[edges[1::2] - 1]


def _in_interval(position: I64, begins: I64, ends: I64) -> Mask:
    at = np.searchsorted(begins, position, side="right") - 1
    return np.asarray((at >= 0) & (position <= np.r_[ends, -1][at]))


def _next_mark(marks: I64, position: I64, never: int) -> I64:
    """Return the first mark at or after each position, `never` if there is none."""
    return np.asarray(np.r_[marks, never][np.searchsorted(marks, position, side="left")])
