"""Advice for PyTorch snapshots: clear gradients earlier, split the batch in two, checkpoint a block."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, saving, sort_by_size
from tb_memplugin.analysis.leaks.over_steps import retained_gradients
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import frame_text, framework_frames
from tb_memplugin.analysis.ownership.torch_roles import made_in_backward, optimizer_steps
from tb_memplugin.analysis.replay.what_if import NO_CHANGE, Change, combine, lifetimes, new_memory, replace_lifetimes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, largest_per, smallest_per
from tb_memplugin.model.fit import OfTorch
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted


def advise_gradients(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all gradients: one call clears them."""
    if not recording.kind.has_tensor_stacks or not (retained_gradients(recording).gradients > 0).any():
        return
    rows, position = recording.allocations, peak(recording).position
    gradients = np.flatnonzero((roles(recording) == Role.GRADIENT) & (rows.charge > 0))
    absent = [NO_CHANGE]
    # The begin of each iteration that follows an optimizer step, and the iteration's own optimizer step.
    begins, steps = retained_gradients(recording).position, np.append(optimizer_steps(recording)[0], recording.length)
    for begin, until in zip(begins.tolist(), steps[np.searchsorted(steps, begins)].tolist(), strict=True):
        waiting = gradients[(rows.start[gradients] < begin) & (rows.end[gradients] > begin)]
        back = np.minimum(_recreate_positions(recording, waiting, begin, until), rows.end[waiting])
        absent.append(Change(np.full(len(waiting), begin), back, -rows.charge[waiting], rows.canonical[waiting]))
    saved = saving(recording, combine(*absent))
    live = gradients[rows.live_at(position)[gradients]]
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
        edits=(OfTorch.CLEAR,),
    )


def _recreate_positions(recording: Recording, gradients: I64, begin: int, until: int) -> I64:
    """Return the position where the backward pass would allocate each gradient: its first tensor of that size.

    Each of several gradients of one size gets its own tensor. Gradients without a matching tensor are allocated at the
    begin of the pass.
    """
    rows = recording.allocations
    made = np.flatnonzero(made_in_backward(recording) & (begin < rows.start) & (rows.start < until))
    if not len(made):
        return np.full(len(gradients), begin)
    both = np.r_[made, gradients]
    order = np.lexsort((rows.start[both], np.arange(len(both)) >= len(made), rows.requested[both]))
    sizes, code = np.unique(rows.requested[both], return_inverse=True)
    turn = np.empty(
        len(both), dtype=np.int64
    )  # per row: its number among those of its size, of `made` or of `gradients`
    for members in (order[order < len(made)], order[order >= len(made)]):
        first = np.searchsorted(code[members], np.arange(len(sizes)))
        turn[members] = np.arange(len(members)) - first[code[members]]
    key = code * len(both) + turn
    known = np.argsort(key[: len(made)], kind="stable")
    place = np.minimum(np.searchsorted(key[: len(made)][known], key[len(made) :]), len(made) - 1)
    found = made[known[place]]
    matched = key[known[place]] == key[len(made) :]
    return np.where(matched, rows.start[found], rows.start[made].min())


def advise_microbatches(recording: Recording) -> Iterator[Advice]:
    """Yield a piece with a lower bound of the saving: not only activations may scale with the batch."""
    if not recording.kind.has_tensor_stacks:
        return
    rows, role, position = recording.allocations, roles(recording), peak(recording).position
    activations = np.flatnonzero((role == Role.ACTIVATION) & (rows.charge > 0))
    live = activations[rows.live_at(position)[activations]]
    if not len(live) or not made_in_backward(recording).any():
        return
    own = lifetimes(recording).take(activations)
    halved = replace_lifetimes(recording, activations, own._replace(bytes=rows.charge[activations] // 2))
    saved = saving(
        recording,
        combine(halved, _accumulated_gradients(recording, activations, np.flatnonzero(role == Role.GRADIENT))),
    )
    if saved is None:
        return
    size = int(rows.charge[live].sum())
    yield Advice(
        kind=AdviceKind.MICROBATCHING,
        title="Use two microbatches",
        sentence=f"{counted(len(live), 'activation')}, {bytes_text(size)}, "
        f"{agree(len(live), 'is', 'are')} kept for the backward pass at the peak. Most activations scale with the "
        f"batch. Computing half of the batch at a time {saved.effect} or more; this includes "
        "the accumulated gradients. More parts save more.",
        change="for part in batch.chunk(2): (loss_of(model, part) / 2).backward()  # then one optimizer.step()",
        rows=sort_by_size(recording, live),
        bytes=size,
        saving=saved,
        edits=(OfTorch.ACCUMULATE,),
    )


def _accumulated_gradients(recording: Recording, activations: I64, gradients: I64) -> Change:
    """Keep gradients from the beginning of their forward pass on.

    A forward pass begins with the first activation that is live when the next gradient is allocated.
    """
    rows = recording.allocations
    made = gradients[rows.start[gradients] >= 0]
    ends = np.sort(rows.end[activations])
    first = np.sort(rows.start[activations])
    # An activation that starts when all earlier ones have ended opens a forward pass.
    opens = first[np.arange(len(first)) == np.searchsorted(ends, first, side="right")]
    begin = np.append(-1, opens)[np.searchsorted(opens, rows.start[made], side="right")]
    return Change(begin, rows.start[made], rows.charge[made], rows.canonical[made])


MAX_SITES = 16  # lines to simulate, those with the most activations first
AS_GOOD = 0.9  # a choice: of lines with this share of the best saving, the innermost is the block's own


class _CallSite(NamedTuple):
    """A line of user code below which activations are allocated."""

    frame: int
    depth: int
    leaves: set[int]  # leaf frames of the activations' stacks


class _SiteSaving(NamedTuple):
    place: _CallSite
    rows: I64  # recomputed, and live at the peak
    saving: Saving


def advise_checkpoint(recording: Recording) -> Iterator[Advice]:
    """Yield one piece, for the best line: blocks are nested, and only one of them should be wrapped."""
    if not recording.kind.has_tensor_stacks or not made_in_backward(recording).any():
        return
    rows = recording.allocations
    kept = np.flatnonzero((roles(recording) == Role.ACTIVATION) & (rows.start >= 0) & (rows.charge > 0))
    kept = kept[np.argsort(rows.start[kept], kind="stable")]
    found = [saved for place in _call_sites(recording, kept) if (saved := _checkpoint_site(recording, kept, place))]
    if not found:
        return
    enough = AS_GOOD * max(saved.saving.at_least for saved in found)
    best = max((saved for saved in found if saved.saving.at_least >= enough), key=lambda saved: saved.place.depth)
    size, line = int(rows.charge[best.rows].sum()), frame_text(recording.stacks, best.place.frame)
    yield Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Checkpoint the calls at {line}",
        sentence=f"The repeated calls at {line} keep {counted(len(best.rows), 'tensor')}, {bytes_text(size)}, for "
        "the backward pass at the peak. Keeping only each call's output, and recomputing the rest, "
        f"{best.saving.effect}. The cost is one more forward pass.",
        change="x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # for x = block(x)",
        rows=sort_by_size(recording, best.rows),
        bytes=size,
        saving=best.saving,
        edits=(OfTorch.CHECKPOINT,),
    )


def _call_sites(recording: Recording, kept: I64) -> list[_CallSite]:
    """Return the lines with the most activations below them; if lines have the same activations, the innermost one."""
    stacks, rows = recording.stacks, recording.allocations
    leaves, which = np.unique(rows.stack[kept], return_inverse=True)
    size = dict(zip(leaves.tolist(), np.bincount(which.ravel(), rows.charge[kept]).tolist(), strict=True))
    own = (~framework_frames(stacks)).tolist()
    # Snapshots may contain one line as several frames.
    lines = np.stack([stacks.function.codes, stacks.file.codes, stacks.line], axis=1)
    line = np.unique(lines, axis=0, return_inverse=True)[1].ravel().tolist()
    found: dict[int, _CallSite] = {}
    for leaf in size:
        for depth, frame in enumerate(reversed([*stacks.callers(leaf)])):
            if own[frame]:
                site = found.setdefault(line[frame], _CallSite(frame, depth, set()))
                site.leaves.add(leaf)
    innermost = {frozenset(place.leaves): place for place in sorted(found.values(), key=lambda place: place.depth)}
    return sorted(innermost.values(), key=lambda place: -sum(size[leaf] for leaf in place.leaves))[:MAX_SITES]


def _checkpoint_site(recording: Recording, kept: I64, place: _CallSite) -> _SiteSaving | None:
    """Simulate checkpointing at a line.

    A call begins where the stack of the first call's first tensor repeats. Its last tensor is its output: it is kept.
    """
    rows = recording.allocations
    inside = kept[np.isin(rows.stack[kept], list(place.leaves))]
    stack, start, end = rows.stack[inside], rows.start[inside], rows.end[inside]
    opens = stack == stack[0]
    first = np.flatnonzero(opens)
    if len(first) < 2:
        return None
    turn, last = np.cumsum(opens) - 1, np.r_[first[1:], len(inside)] - 1
    dropped = np.ones(len(inside), dtype=bool)
    dropped[last] = False
    over = start[last] + 1  # per call: the end of its forward pass
    again = np.maximum(_recompute_positions(recording, start[first], over, end, turn, dropped), over)
    absent = dropped & (end > over[turn])
    until = np.minimum(again[turn], end)[absent]
    dropped_rows = inside[absent]
    gone = Change(over[turn][absent], until, -rows.charge[dropped_rows], rows.canonical[dropped_rows])
    saved = saving(recording, combine(gone, _recompute_bytes(recording, place, start[first], over, again)))
    at = peak(recording).position
    there = inside[absent & (start <= at) & (at < end)]
    return None if saved is None or not len(there) else _SiteSaving(place, there, saved)


def _recompute_positions(recording: Recording, begin: I64, over: I64, end: I64, turn: I64, dropped: np.ndarray) -> I64:
    """Return the position where each call is recomputed.

    This is where the next call's tensors are all freed, or where the backward pass begins; at the latest where the
    first of its own tensors is freed.
    """
    n = recording.length
    earliest = smallest_per(turn[dropped], end[dropped], len(begin), n)
    latest = largest_per(turn[dropped], end[dropped], len(begin), -1)
    backward = np.append(np.sort(recording.allocations.start[made_in_backward(recording)]), n)
    starts = backward[np.minimum(np.searchsorted(backward, over), len(backward) - 1)]
    followed = np.append(begin[1:] < earliest[:-1], False)  # by a call of the same forward pass
    again: I64 = np.minimum(np.where(followed, np.append(latest[1:], -1), starts), earliest)
    return again


def _recompute_bytes(recording: Recording, place: _CallSite, begin: I64, over: I64, again: I64) -> Change:
    """Return the largest temporary of each call, which is recomputed too."""
    rows = recording.allocations
    short = np.flatnonzero(np.isin(rows.stack, list(place.leaves)) & (rows.start >= begin[0]))
    turn = np.searchsorted(begin, rows.start[short], side="right") - 1
    short, turn = short[rows.end[short] <= over[turn]], turn[rows.end[short] <= over[turn]]
    largest = largest_per(turn, rows.charge[short], len(begin))
    return new_memory(again, again + 1, largest)
