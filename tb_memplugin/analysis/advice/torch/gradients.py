"""PyTorch's gradients of one step that wait through the forward pass of the next, for its backward to overwrite."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.leaks.retained_gradients import retained_gradients
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.torch_roles import made_in_backward, optimizer_steps
from tb_memplugin.analysis.replay.what_if import NO_CHANGE, Change, combine
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    """One piece, of all of them: one call clears them."""
    if not recording.kind.has_tensor_stacks or not (retained_gradients(recording).gradients > 0).any():
        return
    rows, at = recording.allocations, peak(recording).position
    gradients = np.flatnonzero((roles(recording) == Role.GRADIENT) & (rows.charge > 0))
    absent = [NO_CHANGE]
    for begin, until in _iterations(recording):
        waiting = gradients[(rows.start[gradients] < begin) & (rows.end[gradients] > begin)]
        back = np.minimum(_recreate_positions(recording, waiting, begin, until), rows.end[waiting])
        absent.append(Change(np.full(len(waiting), begin), back, -rows.charge[waiting]))
    saved = saving(recording, combine(*absent))
    live = gradients[(rows.start[gradients] <= at) & (at < rows.end[gradients])]
    if saved is None or not len(live):
        return
    size = int(rows.charge[live].sum())
    yield Advice(
        kind=AdviceKind.LATE_FREE,
        title="Clear gradients before the forward pass",
        sentence=f"{len(live)} gradients, {bytes_text(size)}, of the step before are still there when the next forward "
        "pass begins. Cleared by then, and each made anew where its backward pass comes to it, the peak is "
        f"{bytes_text(saved.bytes)} lower.",
        change="optimizer.zero_grad(set_to_none=True)  # right after optimizer.step(), or before the forward pass",
        rows=sort_by_size(recording, live),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _iterations(recording: Recording) -> list[tuple[int, int]]:
    """Where each iteration after a step of the optimizer begins, and where its own step does."""
    begins, steps = retained_gradients(recording).position, np.append(optimizer_steps(recording)[0], recording.length)
    return list(zip(begins.tolist(), steps[np.searchsorted(steps, begins)].tolist(), strict=True))


def _recreate_positions(recording: Recording, gradients: I64, begin: int, until: int) -> I64:
    """Per gradient: where the backward pass makes what it would be, the first tensors of its size there.

    At the latest where the pass ends; what it makes no tensor of is back where the pass begins.
    """
    rows = recording.allocations
    made = np.flatnonzero(made_in_backward(recording) & (begin < rows.start) & (rows.start < until))
    if not len(made):
        return np.full(len(gradients), begin)
    both = np.r_[made, gradients]
    order = np.lexsort((rows.start[both], np.arange(len(both)) >= len(made), rows.requested[both]))
    sizes, code = np.unique(rows.requested[both], return_inverse=True)
    turn = np.empty(len(both), dtype=np.int64)  # among what has its size: of those made, and of the gradients
    for members in (order[order < len(made)], order[order >= len(made)]):
        first = np.searchsorted(code[members], np.arange(len(sizes)))
        turn[members] = np.arange(len(members)) - first[code[members]]
    key = code * len(both) + turn
    known = np.argsort(key[: len(made)], kind="stable")
    place = np.minimum(np.searchsorted(key[: len(made)][known], key[len(made) :]), len(made) - 1)
    found = made[known[place]]
    matched = key[known[place]] == key[len(made) :]
    return np.where(matched, rows.start[found], rows.start[made].min())
