"""PyTorch: advice on gradients that stay in memory through the next forward pass."""

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
from tb_memplugin.sizes import agree, bytes_text, counted


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all gradients: one call clears them."""
    if not recording.kind.has_tensor_stacks or not (retained_gradients(recording).gradients > 0).any():
        return
    rows, position = recording.allocations, peak(recording).position
    gradients = np.flatnonzero((roles(recording) == Role.GRADIENT) & (rows.charge > 0))
    absent = [NO_CHANGE]
    for begin, until in _iterations(recording):
        waiting = gradients[(rows.start[gradients] < begin) & (rows.end[gradients] > begin)]
        back = np.minimum(_recreate_positions(recording, waiting, begin, until), rows.end[waiting])
        absent.append(Change(np.full(len(waiting), begin), back, -rows.charge[waiting]))
    saved = saving(recording, combine(*absent))
    live = gradients[(rows.start[gradients] <= position) & (position < rows.end[gradients])]
    if saved is None or not len(live):
        return
    size = int(rows.charge[live].sum())
    yield Advice(
        kind=AdviceKind.LATE_FREE,
        title="Clear gradients before the forward pass",
        sentence=f"{counted(len(live), 'gradient')}, {bytes_text(size)}, from the previous step "
        f"{agree(len(live), 'is', 'are')} still in memory when the next forward pass begins. Clearing "
        f"{agree(len(live), 'it', 'them')} before, so that the backward pass allocates gradients anew, {saved.effect}.",
        change="optimizer.zero_grad(set_to_none=True)  # right after optimizer.step(), or before the forward pass",
        rows=sort_by_size(recording, live),
        bytes=size,
        saving=saved,
    )


def _iterations(recording: Recording) -> list[tuple[int, int]]:
    """Return for each iteration after an optimizer step: its begin, and the begin of its own optimizer step."""
    begins, steps = retained_gradients(recording).position, np.append(optimizer_steps(recording)[0], recording.length)
    return list(zip(begins.tolist(), steps[np.searchsorted(steps, begins)].tolist(), strict=True))


def _recreate_positions(recording: Recording, gradients: I64, begin: int, until: int) -> I64:
    """Return the position where the backward pass would allocate each gradient: its first tensor of that size.

    Of several gradients of one size, each gets its own tensor. Gradients without a matching tensor are back at the
    begin of the pass.
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
