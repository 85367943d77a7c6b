"""Stacks as a graph of functions that call each other, with the figures of google/pprof: flat, cumulative, per call."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.call_graph.samples import Samples
from tb_memplugin.analysis.ownership.frames import of_frameworks
from tb_memplugin.analysis.safe_regex import LONGEST, compiled
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.graph.call_graph import DROPPED, HIDDEN, weave

Bools = npt.NDArray[np.bool_]

FEWEST = 200  # a call or function of less than a 200th of the total is no part of the picture


class By(StrEnum):
    """What is one function; pprof's granularities."""

    FUNCTION = "function"  # by its name alone
    FILE_FUNCTION = "filefunction"
    FILE = "file"
    LINE = "line"


class Refine(NamedTuple):
    """Regular expressions on function names and files, as pprof's options of these names; "" is none.

    `focus` keeps the stacks that match in some frame, `ignore` those that match in none; `hide` takes the frames that
    match out of the stacks, `fold` those of frameworks.
    """

    focus: str = ""
    ignore: str = ""
    hide: str = ""
    fold: bool = False


class Nodes(NamedTuple):
    """Functions; what does not tell them apart is empty or 0. Those with the most below them first.

    `flat`: bytes that were allocated by itself; `cum`: by itself and what it calls. Of a change they may be negative.
    """

    function: Text
    file: Text
    line: I32
    flat: I64
    cum: I64
    flat_allocations: I64
    cum_allocations: I64


class Calls(NamedTuple):
    """Between functions of the picture. `residual`: at times through functions that are not in it."""

    caller: I32  # row in Nodes
    callee: I32
    bytes: I64
    allocations: I64
    residual: Bools


class Callgraph(NamedTuple):
    nodes: Nodes
    drawn: Bools  # per node: it is in the picture
    calls: Calls
    total: int  # bytes that shares are of
    total_allocations: int
    shown: int  # bytes of the stacks that focus and ignore leave
    unplaced: int  # bytes of them that have no frame left, or never had one


def callgraph(samples: Samples, by: By = By.FUNCTION, refine: Refine = Refine(), most: int = 80) -> Callgraph:  # noqa: B008
    """Every function, and a picture of at most so many. InputError where `refine` holds no regular expression."""
    stacks = samples.stacks
    n = len(stacks.parent)
    # Parents come before their children; where a broken file has it otherwise, the stack ends there.
    parent = np.where(stacks.parent < np.arange(n), stacks.parent, -1).astype(np.int32)
    hidden = _matching(stacks, refine.hide, "hide")
    if refine.fold:
        hidden |= of_frameworks(stacks)
    kept = _kept(samples, parent, refine)
    leaf, size, number = samples.leaf[kept], samples.bytes[kept], samples.allocations[kept]
    # Sums are exact in float64 up to 2**53; bincount knows no int64.
    own = np.stack([np.bincount(leaf + 1, amount, n + 1)[1:] for amount in (size, number)], axis=1).astype(np.int64)

    entity, first = _entities(stacks, by)
    visible = np.where(hidden, HIDDEN, entity).astype(np.int32)
    flat, cum, *_ = weave(parent, visible, len(first), own)
    seen = np.isin(np.arange(len(first)), visible[_with_callers(parent, leaf[leaf >= 0])])
    order = np.lexsort((first, -np.abs(flat[:, 0]), -np.abs(cum[:, 0])))
    order = order[seen[order]]
    whole = max(abs(samples.total), 1)
    drawn = np.zeros(len(first), dtype=bool)
    drawn[order[:most]] = np.abs(cum[order[:most], 0]) >= whole / FEWEST
    if not drawn.any():  # nothing has bytes: then what is there by number
        drawn[order[:most]] = True

    *_, caller, callee, amount, residual = weave(
        parent, np.where(hidden, HIDDEN, np.where(drawn[entity], entity, DROPPED)).astype(np.int32), len(first), own
    )
    place = np.full(len(first), -1, dtype=np.int32)
    place[order] = np.arange(len(order))
    example = first[order]
    lined = by is By.LINE
    nodes = Nodes(
        function=_unless(by is By.FILE, stacks.function.take(example)),
        file=_unless(by is By.FUNCTION, stacks.file.take(example)),
        line=stacks.line[example] if lined else np.zeros(len(example), np.int32),
        flat=flat[order, 0],
        cum=cum[order, 0],
        flat_allocations=flat[order, 1],
        cum_allocations=cum[order, 1],
    )
    # Stacks without a frame: they never had one, or every one of them is hidden.
    bare = ~_any_above(~hidden, parent)
    placed = np.r_[~bare, False][leaf]
    return Callgraph(
        nodes=nodes,
        drawn=drawn[order],
        calls=Calls(place[caller], place[callee], amount[:, 0], amount[:, 1], residual),
        total=samples.total,
        total_allocations=samples.total_allocations,
        shown=int(size.sum()),
        unplaced=int(size[~placed].sum()),
    )


def _unless(blank: bool, text: Text) -> Text:
    return Text(np.full(len(text), -1, np.int32), text.strings) if blank else text


def _entities(stacks: Stacks, by: By) -> tuple[I32, I64]:
    """Which function each frame is of, and a frame of each function."""
    names = {
        By.FUNCTION: (stacks.function.codes,),
        By.FILE_FUNCTION: (stacks.function.codes, stacks.file.codes),
        By.FILE: (stacks.file.codes,),
        By.LINE: (stacks.function.codes, stacks.file.codes, stacks.line),
    }
    entity, first = np.zeros(len(stacks.parent), dtype=np.int64), np.zeros(0, dtype=np.int64)
    for column in names[by]:
        key = entity * (int(column.max(initial=0)) + 2) + column + 1
        _, first, entity = np.unique(key, return_index=True, return_inverse=True)
    return entity.astype(np.int32), first


def _kept(samples: Samples, parent: I32, refine: Refine) -> Bools:
    """Per sample, whether focus and ignore leave it."""
    kept = np.ones(len(samples.leaf), dtype=bool)
    for name, wanted in (("focus", True), ("ignore", False)):
        if pattern := getattr(refine, name):
            found = np.r_[_any_above(_matching(samples.stacks, pattern, name), parent), False]
            kept &= found[samples.leaf] == wanted
    return kept


def _matching(stacks: Stacks, pattern: str, name: str) -> Bools:
    """Per frame, whether its function or file matches. Each distinct text is looked at once."""
    if not pattern:
        return np.zeros(len(stacks.parent), dtype=bool)
    expression = compiled(pattern, name)

    def match(text: Text) -> Bools:
        strings = text.strings
        found = np.array([bool(expression.search(strings[i][:LONGEST])) for i in range(len(strings))] + [False])
        chosen: Bools = found[text.codes]
        return chosen

    return match(stacks.function) | match(stacks.file)


def _any_above(own: Bools, parent: I32) -> Bools:
    """Per node, whether it is so of itself or of a node that it is below. Looks twice as far up each time."""
    found, above = own.copy(), parent.copy()
    while (above >= 0).any():
        found |= np.where(above >= 0, found[above], False)
        above = np.where(above >= 0, above[above], -1)
    return found


def _with_callers(parent: I32, leaves: I32) -> Bools:
    """Per node, whether it is one of these or above one."""
    found = np.zeros(len(parent) + 1, dtype=bool)
    while len(leaves := np.unique(leaves[~found[leaves]])):
        found[leaves] = True
        leaves = parent[leaves]
        leaves = leaves[leaves >= 0]
    return found[:-1]
