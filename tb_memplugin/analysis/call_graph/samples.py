"""Stacks and what they hold: of one recording's live rows, of several devices together, of the change between two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text


class Samples(NamedTuple):
    """`total` is what shares are of: everything, or of a change, what there was before it."""

    stacks: Stacks
    leaf: I32  # -1 no stack
    bytes: I64
    allocations: I64
    total: int
    total_allocations: int


def live_samples(recordings: Sequence[Recording], position: int = 0) -> Samples:
    """What is live at a position in all of these recordings together."""
    parts = [(r, np.flatnonzero(_live_rows(r, position))) for r in recordings]
    stacks, shift = _merge_trees([r.stacks for r in recordings])
    leaf = [_shift(r.allocations.stack[rows], by) for (r, rows), by in zip(parts, shift, strict=True)]
    size = np.concatenate([r.allocations.charge[rows] for r, rows in parts])
    count = np.concatenate([np.ones(len(rows), np.int64) if r.counts is None else r.counts[rows] for r, rows in parts])
    return Samples(stacks, np.concatenate(leaf), size, count, int(size.sum()), int(count.sum()))


def diff_samples(before: Samples, after: Samples) -> Samples:
    """What has come, and what has gone as negative figures; shares are of `before`."""
    stacks, (first, second) = _merge_trees([before.stacks, after.stacks])
    return Samples(
        stacks,
        np.r_[_shift(before.leaf, first), _shift(after.leaf, second)],
        np.r_[-before.bytes, after.bytes],
        np.r_[-before.allocations, after.allocations],
        before.total,
        before.total_allocations,
    )


def _live_rows(recording: Recording, position: int) -> npt.NDArray[np.bool_]:
    rows = recording.allocations
    live = (rows.start <= position) & (position < rows.end)
    # What lives in another row's memory is counted there; an executable of no bytes is still there.
    live &= (rows.charge > 0) | (rows.size == 0)
    return live


def _merge_trees(trees: Sequence[Stacks]) -> tuple[Stacks, list[int]]:
    """One tree of several, and what to add to each one's node numbers. A tree that comes twice is there once."""
    distinct = list({id(tree): tree for tree in trees}.values())
    starts = np.cumsum([0, *(len(tree.parent) for tree in distinct)]).tolist()
    at = {id(tree): start for tree, start in zip(distinct, starts, strict=False)}
    shift = [at[id(tree)] for tree in trees]
    if len(distinct) == 1:
        return distinct[0], shift
    joined = Stacks(
        np.concatenate([_shift(tree.parent, at[id(tree)]) for tree in distinct]).astype(np.int32),
        concatenate_text([tree.function for tree in distinct]),
        concatenate_text([tree.file for tree in distinct]),
        np.concatenate([tree.line for tree in distinct]),
    )
    return joined, shift


def _shift(nodes: I32, by: int) -> I32:
    return np.where(nodes >= 0, nodes + by, -1).astype(np.int32)


def concatenate_text(columns: Sequence[Text]) -> Text:
    """One column after the other; equal texts have equal codes, and the empty one -1."""
    known = {"": -1}
    codes = [np.empty(0, np.int32)]
    for column in columns:
        # A few rows of a large table show few of its strings.
        used, which = np.unique(column.codes, return_inverse=True)
        texts = (column.strings[code] if code >= 0 else "" for code in used.tolist())
        of_used = [known.setdefault(text, len(known) - 1) for text in texts]
        codes.append(np.array(of_used, dtype=np.int32)[which])
    return Text(np.concatenate(codes), Strings.of(list(known)[1:]))
