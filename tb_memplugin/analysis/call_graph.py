"""Call graphs of samples, that is, stacks with bytes, with pprof's figures: flat, cumulative and per call."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.ownership.source_lines import framework_frames
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.graph.call_graph import DROPPED, HIDDEN, weave, with_callees, with_callers
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.regex import Regex


class Samples(NamedTuple):
    """Stacks with bytes. Shares refer to `total`: all bytes, or for a difference, those of the base."""

    stacks: Stacks
    leaf: I32  # -1 for no stack
    bytes: I64
    allocations: I64
    total: int
    total_allocations: int


def live_samples(recordings: Sequence[Recording]) -> Samples:
    """Return the samples that are live in any of these recordings of one moment."""
    parts = [(r, np.flatnonzero(_live_rows(r))) for r in recordings]
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


def _live_rows(recording: Recording) -> Mask:
    rows = recording.allocations
    # The bytes of a row in another row's memory are counted there. Executables of 0 bytes still count as allocations.
    counted: Mask = (rows.charge > 0) | (rows.size == 0)
    return counted & rows.live_at(0)


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
    """Concatenate columns. Equal texts get equal codes, the empty text gets -1."""
    known = {"": -1}
    codes = [np.empty(0, np.int32)]
    for column in columns:
        # Only the strings that these rows use are copied.
        used, which = np.unique(column.codes, return_inverse=True)
        texts = (column.strings[code] if code >= 0 else "" for code in used.tolist())
        of_used = [known.setdefault(text, len(known) - 1) for text in texts]
        codes.append(np.array(of_used, dtype=np.int32)[which])
    return Text(np.concatenate(codes), Strings.of(list(known)[1:]))


MIN_SHARE = 200  # functions and calls below 1/200 of the total are not drawn


class Granularity(StrEnum):
    """The parts of a frame that identify a node, as pprof's granularities."""

    FUNCTION = "function"  # its name alone
    FILE_FUNCTION = "filefunction"
    FILE = "file"
    LINE = "line"


class Refine(NamedTuple):
    """pprof's options of these names: regular expressions on function names and files; "" for none.

    `focus` keeps the stacks with a matching frame, `ignore` drops them. `hide` removes matching frames from the stacks,
    `fold` removes the frames of frameworks.
    """

    focus: str = ""
    ignore: str = ""
    hide: str = ""
    fold: bool = False


NO_REFINEMENT = Refine()


class FunctionNodes(NamedTuple):
    """Functions, in order of cumulative bytes. Columns that the granularity ignores are empty or 0.

    `flat` are the bytes that a function allocates itself, `cum` includes its callees. Differences may be negative.
    """

    function: Text
    file: Text
    line: I32
    flat: I64
    cum: I64
    flat_allocations: I64
    cum_allocations: I64


class Calls(NamedTuple):
    """Calls between drawn functions. `residual`: some of them go through functions that are not drawn."""

    caller: I32  # row in Nodes
    callee: I32
    bytes: I64
    allocations: I64
    residual: Mask


class CallGraph(NamedTuple):
    nodes: FunctionNodes
    drawn: Mask  # per node
    calls: Calls
    total: int  # bytes; shares refer to it
    total_allocations: int
    shown: int  # bytes of the stacks that pass focus and ignore
    unplaced: int  # bytes of these without any frame left


def build_call_graph(
    samples: Samples, by: Granularity = Granularity.FUNCTION, refine: Refine = NO_REFINEMENT, most: int = 80
) -> CallGraph:
    """Build the graph of all functions, of which at most `most` are drawn. InputError for invalid expressions."""
    stacks = samples.stacks
    n = len(stacks.parent)
    # Parents precede their children. In a corrupt file, a stack ends at a frame whose parent follows it.
    parent = np.where(stacks.parent < np.arange(n), stacks.parent, -1).astype(np.int32)
    hidden = _matching_frames(stacks, refine.hide, "hide")
    if refine.fold:
        hidden |= framework_frames(stacks)
    kept = _kept_samples(samples, parent, refine)
    leaf, size, number = samples.leaf[kept], samples.bytes[kept], samples.allocations[kept]
    # bincount sums in float64, which is exact up to 2**53.
    own = np.stack([np.bincount(leaf + 1, amount, n + 1)[1:] for amount in (size, number)], axis=1).astype(np.int64)

    entity, first = _number_functions(stacks, by)
    visible = np.where(hidden, HIDDEN, entity).astype(np.int32)
    flat, cum, *_ = weave(parent, visible, len(first), own, with_calls=False)
    seen = np.zeros(len(first) + 1, dtype=bool)  # the last entry is for HIDDEN
    seen[visible[with_callers(parent, np.bincount(leaf + 1, minlength=n + 1)[1:] > 0)]] = True
    order = np.lexsort((first, -np.abs(flat[:, 0]), -np.abs(cum[:, 0])))
    order = order[seen[order]]
    total = max(abs(samples.total), 1)
    drawn = np.zeros(len(first), dtype=bool)
    drawn[order[:most]] = np.abs(cum[order[:most], 0]) >= total / MIN_SHARE
    if not drawn.any():  # without any bytes, functions are drawn by number of allocations
        drawn[order[:most]] = True

    *_, caller, callee, amount, residual = weave(
        parent, np.where(hidden, HIDDEN, np.where(drawn[entity], entity, DROPPED)).astype(np.int32), len(first), own
    )
    place = np.full(len(first), -1, dtype=np.int32)
    place[order] = np.arange(len(order))
    example = first[order]
    lined = by is Granularity.LINE
    nodes = FunctionNodes(
        function=_blank_if(by is Granularity.FILE, stacks.function.take(example)),
        file=_blank_if(by is Granularity.FUNCTION, stacks.file.take(example)),
        line=stacks.line[example] if lined else np.zeros(len(example), np.int32),
        flat=flat[order, 0],
        cum=cum[order, 0],
        flat_allocations=flat[order, 1],
        cum_allocations=cum[order, 1],
    )
    # Frames that are hidden, as are all of their callers: a stack that ends there has no visible frame.
    bare = ~with_callees(parent, ~hidden)
    placed = np.r_[~bare, False][leaf]
    return CallGraph(
        nodes=nodes,
        drawn=drawn[order],
        calls=Calls(place[caller], place[callee], amount[:, 0], amount[:, 1], residual),
        total=samples.total,
        total_allocations=samples.total_allocations,
        shown=int(size.sum()),
        unplaced=int(size[~placed].sum()),
    )


def _blank_if(blank: bool, text: Text) -> Text:
    return Text(np.full(len(text), -1, np.int32), text.strings) if blank else text


def _number_functions(stacks: Stacks, by: Granularity) -> tuple[I32, I64]:
    """Return the function number of each frame, and one frame of each function."""
    names = {
        Granularity.FUNCTION: (stacks.function.codes,),
        Granularity.FILE_FUNCTION: (stacks.function.codes, stacks.file.codes),
        Granularity.FILE: (stacks.file.codes,),
        Granularity.LINE: (stacks.function.codes, stacks.file.codes, stacks.line),
    }
    entity, first = group_rows(names[by])
    return entity.astype(np.int32), first


def _kept_samples(samples: Samples, parent: I32, refine: Refine) -> Mask:
    """Mark the samples that pass focus and ignore."""
    kept = np.ones(len(samples.leaf), dtype=bool)
    for name, wanted in (("focus", True), ("ignore", False)):
        if pattern := getattr(refine, name):
            found = np.r_[with_callees(parent, _matching_frames(samples.stacks, pattern, name)), False]
            kept &= found[samples.leaf] == wanted
    return kept


def _matching_frames(stacks: Stacks, pattern: str, name: str) -> Mask:
    """Mark the frames whose function or file matches. Each distinct text is tested once."""
    if not pattern:
        return np.zeros(len(stacks.parent), dtype=bool)
    expression = Regex(pattern, name)
    return stacks.function.where(expression.search) | stacks.file.where(expression.search)
