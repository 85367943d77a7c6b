"""PyTorch: advice to checkpoint a block that is called several times in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, saving, sort_by_size
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.torch_roles import made_in_backward
from tb_memplugin.analysis.replay.what_if import Change, combine
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

MAX_SITES = 16  # lines to simulate, those with the most activations first
AS_GOOD = 0.9  # of the best saving; among such lines, the innermost is the block's own


class _CallSite(NamedTuple):
    """A line of user code below which activations are allocated."""

    frame: int
    depth: int
    leaves: set[int]  # leaf frames of the activations' stacks


class _SiteSaving(NamedTuple):
    place: _CallSite
    rows: I64  # recomputed, and live at the peak
    saving: Saving


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for the best line: blocks are nested, and only one of them is to be wrapped."""
    if not recording.kind.has_tensor_stacks or not made_in_backward(recording).any():
        return
    rows = recording.allocations
    kept = np.flatnonzero((roles(recording) == Role.ACTIVATION) & (rows.start >= 0) & (rows.charge > 0))
    kept = kept[np.argsort(rows.start[kept], kind="stable")]
    tried = [_checkpoint_site(recording, kept, place) for place in _call_sites(recording, kept)]
    found = [saved for saved in tried if saved is not None]
    if not found:
        return
    enough = AS_GOOD * max(saved.saving.bytes for saved in found)
    best = max((saved for saved in found if saved.saving.bytes >= enough), key=lambda saved: saved.place.depth)
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
    )


def _call_sites(recording: Recording, kept: I64) -> list[_CallSite]:
    """Return the lines with the most activations below them; of lines with the same activations, the innermost."""
    stacks, rows = recording.stacks, recording.allocations
    leaves, which = np.unique(rows.stack[kept], return_inverse=True)
    size = dict(zip(leaves.tolist(), np.bincount(which.ravel(), rows.charge[kept]).tolist(), strict=True))
    parent, own = stacks.parent.tolist(), (~framework_frames(stacks)).tolist()
    # Snapshots may contain one line as several frames.
    lines = np.stack([stacks.function.codes, stacks.file.codes, stacks.line], axis=1)
    line = np.unique(lines, axis=0, return_inverse=True)[1].ravel().tolist()
    found: dict[int, _CallSite] = {}
    for leaf in size:
        for depth, frame in enumerate(_callers_first(parent, leaf)):
            if own[frame]:
                site = found.setdefault(line[frame], _CallSite(frame, depth, set()))
                site.leaves.add(leaf)
    innermost = {frozenset(place.leaves): place for place in sorted(found.values(), key=lambda place: place.depth)}
    return sorted(innermost.values(), key=lambda place: -sum(size[leaf] for leaf in place.leaves))[:MAX_SITES]


def _callers_first(parent: list[int], leaf: int) -> list[int]:
    """Return the frames of a stack, outermost first. Cycles in corrupt files are cut."""
    chain: dict[int, None] = {}
    while 0 <= leaf < len(parent) and leaf not in chain:
        chain[leaf] = None
        leaf = parent[leaf]
    return list(chain)[::-1]


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
    gone = Change(over[turn][absent], until, -rows.charge[inside[absent]])
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
    earliest, latest = np.full(len(begin), n), np.full(len(begin), -1)
    np.minimum.at(earliest, turn[dropped], end[dropped])
    np.maximum.at(latest, turn[dropped], end[dropped])
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
    largest = np.zeros(len(begin), dtype=np.int64)
    np.maximum.at(largest, turn, rows.charge[short])
    return Change(again, again + 1, largest)
