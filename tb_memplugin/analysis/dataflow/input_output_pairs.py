"""Which argument of a program comes back updated as which of its results: weights and their state, caches, counters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.dataflow.graph import DataflowGraph, Mask, dataflow_graph
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.walks import grouped, nearest, spread_labels

MAX_SEARCHED = 4096  # values that one result is followed back through
MAX_CANDIDATES = 8  # arguments considered for one result: a weight, its moments, and some
MAX_BY_ALIAS = 1024  # hidden states are few; each 64 cost a walk over the whole program
MAX_ROUNDS = 64  # over a program's edges, for loops within loops
LABELS = 64  # bits of a label


@dataclass(frozen=True, slots=True, eq=False)
class InputOutputPairs:
    """Pairs of an argument and the result that it comes back as; equal in shape and type, each in one pair only."""

    argument: I32  # its value
    leaf: I32  # of the program's result
    value: I32  # of that leaf
    in_place: U8  # 1: only a part of it was written over, as of a cache
    donated: U8  # 1: the result is given the argument's memory

    def __len__(self) -> int:
        return len(self.argument)

    def take(self, which: Mask) -> InputOutputPairs:
        return InputOutputPairs(*(getattr(self, column)[which] for column in self.__slots__))


_EMPTY = np.empty(0, dtype=np.int32)
NO_PAIRS = InputOutputPairs(_EMPTY, _EMPTY, _EMPTY, _EMPTY.astype(np.uint8), _EMPTY.astype(np.uint8))


@memoize
def input_output_pairs(recording: Recording) -> InputOutputPairs:
    """By the path from argument to result that goes element by element, the shortest first.

    `w - lr * m` comes of w in one step and of m in two, so it is w's twin. Where two paths are equally long, the
    program's own aliases decide, then the order. What is left is paired by the aliases alone, as far as the one
    does come of the other. Names are not looked at.
    """
    known = dataflow_graph(recording)
    return NO_PAIRS if known is None else _pair(known)


def _pair(known: DataflowGraph) -> InputOutputPairs:
    values = known.values
    leaf, argument, kind = _candidates(values)
    free_leaf, free_argument = np.ones(len(values.result), dtype=bool), np.ones(len(values), dtype=bool)
    chosen: list[tuple[int, int, int]] = []
    for at, source, how in zip(leaf.tolist(), argument.tolist(), kind.tolist(), strict=True):
        if free_leaf[at] and free_argument[source]:
            free_leaf[at] = free_argument[source] = False
            chosen.append((source, at, how == Derivation.IN_PLACE))
    chosen += [(source, at, False) for source, at in _pairs_by_alias(known, free_leaf, free_argument)]
    table = np.array(sorted(chosen, key=lambda pair: pair[1]), dtype=np.int32).reshape(-1, 3)
    leaf = table[:, 1]
    donated = values.donor[leaf] == values.argument[table[:, 0]]
    return InputOutputPairs(
        table[:, 0], leaf, values.result[leaf], table[:, 2].astype(np.uint8), donated.astype(np.uint8)
    )


def _candidates(values: DataflowValues) -> tuple[I32, I32, U8]:
    """(leaf of the result, argument, Derivation) of each possible pair, the best first."""
    pairs, (carried_from, carried_to) = values.derivations, values.loop_carried
    whole = pairs.kind != Derivation.PART
    nothing = np.zeros(len(carried_from), dtype=np.int32)
    begin, order = grouped(np.r_[pairs.target[whole], carried_to].astype(np.int32), len(values))
    leaf, argument, steps, kind = nearest(
        begin,
        np.r_[pairs.source[whole], carried_from].astype(np.int32)[order],
        np.r_[pairs.steps[whole], nothing].astype(np.int32)[order],
        np.r_[pairs.kind[whole], nothing].astype(np.uint8)[order],
        values.result,
        (values.argument >= 0).astype(np.uint8),
        MAX_SEARCHED,
    )
    same = values.shape[argument] == values.shape[values.result[leaf]]
    leaf, argument, steps, kind = leaf[same], argument[same], steps[same], kind[same]
    other = values.donor[leaf] != values.argument[argument]
    by_worth = np.lexsort((values.argument[argument], leaf, other, steps, kind))
    rank = np.empty(len(by_worth), dtype=np.int64)  # among the candidates of its leaf
    by_leaf = by_worth[np.argsort(leaf[by_worth], kind="stable")]
    begin, _ = grouped(leaf, len(values.result))
    rank[by_leaf] = np.arange(len(by_leaf)) - begin[leaf[by_leaf]]
    best = by_worth[rank[by_worth] < MAX_CANDIDATES]
    return leaf[best], argument[best], kind[best]


def _pairs_by_alias(known: DataflowGraph, free_leaf: Mask, free_argument: Mask) -> list[tuple[int, int]]:
    """(argument, leaf) of what the program aliases beyond that, where the result does come of the argument."""
    values = known.values
    of_leaf = np.full(len(values.donor) + int(values.argument.max(initial=-1)) + 2, -1, dtype=np.int32)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    of_leaf[values.argument[arguments]] = arguments
    leaf = np.flatnonzero((values.donor >= 0) & (values.result >= 0) & free_leaf)[:MAX_BY_ALIAS]
    source = of_leaf[values.donor[leaf]]
    good = (source >= 0) & free_argument[source]
    good &= values.shape[source] == values.shape[values.result[leaf]]
    leaf, source = leaf[good], source[good]
    begin = np.arange(len(source) + 1)
    found = depends_on(known, source, begin, values.result[leaf])
    return list(zip(source[found].tolist(), leaf[found].tolist(), strict=True))


def depends_on(known: DataflowGraph, seeds: I32, begin: I64, nodes: I32) -> Mask:
    """Per question i: whether node nodes[i] comes of any of the nodes seeds[begin[i]:begin[i + 1]]."""
    answer = np.zeros(len(nodes), dtype=bool)
    source, target = known.edges
    for first in range(0, len(nodes), LABELS):
        last = min(first + LABELS, len(nodes))
        label = np.zeros(known.nodes, dtype=np.uint64)
        asked = seeds[begin[first] : begin[last]]
        bits = np.left_shift(np.uint64(1), np.arange(last - first, dtype=np.uint64))
        np.bitwise_or.at(label, asked, np.repeat(bits, np.diff(begin[first : last + 1])))
        spread_labels(label, source, target, MAX_ROUNDS)
        answer[first:last] = (label[nodes[first:last]] & bits) != 0
    return answer
