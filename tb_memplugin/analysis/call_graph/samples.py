"""Samples (stacks with bytes) of live rows, of one or several devices, and of the difference between two profiles."""

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
    """Stacks with bytes. Shares refer to `total`: all bytes, or for a difference, those of the base."""

    stacks: Stacks
    leaf: I32  # -1 for no stack
    bytes: I64
    allocations: I64
    total: int
    total_allocations: int


def live_samples(recordings: Sequence[Recording], position: int = 0) -> Samples:
    """Return the samples that are live at a position in any of these recordings."""
    parts = [(r, np.flatnonzero(_live_rows(r, position))) for r in recordings]
    stacks, shift = _merge_trees([r.stacks for r in recordings])
    leaf = [_shift(r.allocations.stack[rows], by) for (r, rows), by in zip(parts, shift, strict=True)]
    size = np.concatenate([r.allocations.charge[rows] for r, rows in parts])
    count = np.concatenate([r.allocation_counts(rows) for r, rows in parts])
    return Samples(stacks, np.concatenate(leaf), size, count, int(size.sum()), int(count.sum()))


def diff_samples(before: Samples, after: Samples) -> Samples:
    """Return new samples, and lost ones with negative bytes; shares refer to `before`."""
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
    # Rows in another row's memory are counted there. Executables of 0 bytes still count as allocations.
    live &= (rows.charge > 0) | (rows.size == 0)
    return live


def _merge_trees(trees: Sequence[Stacks]) -> tuple[Stacks, list[int]]:
    """Merge trees into one. Return it with the offset of each tree's nodes; equal trees are included once."""
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
    """Concatenate columns. Equal texts have equal codes, the empty text has -1."""
    known = {"": -1}
    codes = [np.empty(0, np.int32)]
    for column in columns:
        # Only the strings that these rows use are copied.
        used, which = np.unique(column.codes, return_inverse=True)
        texts = (column.strings[code] if code >= 0 else "" for code in used.tolist())
        of_used = [known.setdefault(text, len(known) - 1) for text in texts]
        codes.append(np.array(of_used, dtype=np.int32)[which])
    return Text(np.concatenate(codes), Strings.of(list(known)[1:]))
