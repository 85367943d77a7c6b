"""Pairs of an argument and the result that returns it updated, and the arithmetic of such updates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph, DataflowGraph, dataflow_graph, read_keys, row_of_value
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, I64, U8, Mask, marked
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.native.graph.walks import grouped, nearest, spread_labels

MAX_SEARCHED = 4096  # values that the search from one result visits
MAX_CANDIDATES = 8  # arguments considered for one result: a weight, its moments, and a few more
MAX_BY_ALIAS = 1024  # hidden states are few, and every 64 of them cost a walk over the program
MAX_ROUNDS = 64  # over a program's edges, for nested loops
LABELS = 64  # bits of a label


@dataclass(frozen=True, slots=True, eq=False)
class InputOutputPairs:
    """Pairs of an argument and the result that returns it, equal in shape and dtype; each is in one pair only."""

    argument: I32  # the argument's value
    leaf: I32  # index among the leaves of the program's result
    value: I32  # the leaf's value
    in_place: U8  # 1: only a part was overwritten, as in a cache
    donated: U8  # 1: the result reuses the argument's memory

    def __len__(self) -> int:
        return len(self.argument)

    def take(self, which: Mask) -> InputOutputPairs:
        return InputOutputPairs(*(getattr(self, column)[which] for column in self.__slots__))


_EMPTY = np.empty(0, dtype=np.int32)
NO_PAIRS = InputOutputPairs(_EMPTY, _EMPTY, _EMPTY, _EMPTY.astype(np.uint8), _EMPTY.astype(np.uint8))


@memoize
def input_output_pairs(recording: Recording) -> InputOutputPairs:
    """Pair arguments with results by the shortest chain of element-by-element operations between them.

    `w - lr * m` is derived from w in one operation and from m in two, so it is paired with w. If two chains are
    equally long, the program's aliases decide, then the order. The remaining results are paired by the aliases alone,
    if they are derived from the argument at all. Names are not used.
    """
    graph = dataflow_graph(recording)
    return NO_PAIRS if graph is None else _pair(graph)


def with_updated(recording: Recording, rows: I64) -> I64:
    """Return the rows of arguments, and of the results that return them updated."""
    found, row = input_output_pairs(recording), row_of_value(recording)
    back = row[found.value[np.isin(row[found.argument], rows)]]
    return np.union1d(rows, back[back >= 0]).astype(np.int64)


@memoize
def updated_arguments(recording: Recording) -> InputOutputPairs:
    """Return input_output_pairs(), and pairs in which one is only a part of the other.

    A compiler may return only each device's part of a weight that was passed in whole, so that their shapes differ.
    """
    graph, pairs = dataflow_graph(recording), input_output_pairs(recording)
    if graph is None:
        return pairs
    values = graph.values
    free_leaf, free_argument = values.result >= 0, values.argument >= 0
    free_leaf[pairs.leaf] = free_argument[pairs.argument] = False
    free_leaf &= values.elements[values.result] > 1
    leaf, argument, steps, _ = _nearest_arguments(values, values.derivations.kind >= 0, free_leaf, free_argument)
    order = np.lexsort((values.argument[argument], leaf, steps))
    chosen: dict[int, int] = {}  # argument of each leaf
    for at, source in zip(leaf[order].tolist(), argument[order].tolist(), strict=True):
        if at not in chosen and free_argument[source]:
            free_argument[source] = False
            chosen[at] = source
    more = np.array(sorted(chosen.items()), dtype=np.int32).reshape(-1, 2)
    false = np.zeros(len(more), dtype=np.uint8)
    parts = InputOutputPairs(more[:, 1], more[:, 0], values.result[more[:, 0]], false, false)
    columns = [np.r_[getattr(pairs, column), getattr(parts, column)] for column in InputOutputPairs.__slots__]
    return InputOutputPairs(*columns)


def _pair(graph: DataflowGraph) -> InputOutputPairs:
    values = graph.values
    leaf, argument, kind = _candidates(values)
    free_leaf, free_argument = np.ones(len(values.result), dtype=bool), np.ones(len(values), dtype=bool)
    chosen: list[tuple[int, int, int]] = []
    for at, source, kind_of_pair in zip(leaf.tolist(), argument.tolist(), kind.tolist(), strict=True):
        if free_leaf[at] and free_argument[source]:
            free_leaf[at] = free_argument[source] = False
            chosen.append((source, at, kind_of_pair == Derivation.IN_PLACE))
    chosen += [(source, at, False) for source, at in _pairs_by_alias(graph, free_leaf, free_argument)]
    table = np.array(sorted(chosen, key=lambda pair: pair[1]), dtype=np.int32).reshape(-1, 3)
    leaf = table[:, 1]
    donated = values.donor[leaf] == values.argument[table[:, 0]]
    return InputOutputPairs(
        table[:, 0], leaf, values.result[leaf], table[:, 2].astype(np.uint8), donated.astype(np.uint8)
    )


def _candidates(values: DataflowValues) -> tuple[I32, I32, U8]:
    """Return the result leaf, argument and Derivation of each possible pair, best first."""
    complete = values.derivations.kind != Derivation.PART
    leaf, argument, steps, kind = _nearest_arguments(values, complete, values.result >= 0, values.argument >= 0)
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


def _nearest_arguments(values: DataflowValues, which: Mask, leaves: Mask, ends: Mask) -> tuple[I32, I32, I32, U8]:
    """Return (leaf, argument, steps, Derivation) of the arguments that each leaf is derived from, along these pairs."""
    pairs, (carried_from, carried_to) = values.derivations, values.loop_carried
    no_steps = np.zeros(len(carried_from), dtype=np.int32)
    begin, order = grouped(np.r_[pairs.target[which], carried_to].astype(np.int32), len(values))
    return nearest(
        begin,
        np.r_[pairs.source[which], carried_from].astype(np.int32)[order],
        np.r_[pairs.steps[which], no_steps].astype(np.int32)[order],
        np.r_[pairs.kind[which], no_steps].astype(np.uint8)[order],
        np.where(leaves, values.result, -1).astype(np.int32),
        ends.astype(np.uint8),
        MAX_SEARCHED,
    )


def _pairs_by_alias(graph: DataflowGraph, free_leaf: Mask, free_argument: Mask) -> list[tuple[int, int]]:
    """Return (argument, leaf) of further pairs that the program aliases, if the result depends on the argument."""
    values = graph.values
    of_leaf = np.full(len(values.donor) + int(values.argument.max(initial=-1)) + 2, -1, dtype=np.int32)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    of_leaf[values.argument[arguments]] = arguments
    leaf = np.flatnonzero((values.donor >= 0) & (values.result >= 0) & free_leaf)[:MAX_BY_ALIAS]
    source = of_leaf[values.donor[leaf]]
    good = (source >= 0) & free_argument[source]
    good &= values.shape[source] == values.shape[values.result[leaf]]
    leaf, source = leaf[good], source[good]
    begin = np.arange(len(source) + 1)
    found = depends_on(graph, source, begin, values.result[leaf])
    return list(zip(source[found].tolist(), leaf[found].tolist(), strict=True))


def depends_on(graph: DataflowGraph, seeds: I32, begin: I64, nodes: I32) -> Mask:
    """Return for each i whether nodes[i] depends on any of the nodes seeds[begin[i]:begin[i + 1]]."""
    answer = np.zeros(len(nodes), dtype=bool)
    source, target = graph.edges
    for first in range(0, len(nodes), LABELS):
        last = min(first + LABELS, len(nodes))
        label = np.zeros(graph.nodes, dtype=np.uint64)
        sources = seeds[begin[first] : begin[last]]
        bits = np.left_shift(np.uint64(1), np.arange(last - first, dtype=np.uint64))
        np.bitwise_or.at(label, sources, np.repeat(bits, np.diff(begin[first : last + 1])))
        spread_labels(label, source, target, MAX_ROUNDS)
        answer[first:last] = (label[nodes[first:last]] & bits) != 0
    return answer


WITHOUT_OPERANDS = {"broadcast", "constant", "iota"}  # a learning rate broadcast to the gradient's shape is no gradient


@dataclass(frozen=True, eq=False)
class UpdateArithmetic:
    """The values from which some results are computed element by element, back to arguments and other sources."""

    values: DataflowValues
    inside: Mask  # per value: part of the arithmetic

    @staticmethod
    def of(values: DataflowValues, results: I32) -> UpdateArithmetic:
        elementwise = values.derivations.kind == Derivation.ELEMENTWISE
        back = CsrGraph.of(
            np.r_[values.derivations.target[elementwise], values.loop_carried[1]].astype(np.int32),
            np.r_[values.derivations.source[elementwise], values.loop_carried[0]].astype(np.int32),
            len(values),
        )
        return UpdateArithmetic(values, back.reach(results))

    @property
    def _pairs(self) -> tuple[I32, I32]:
        """Return the source and target values of the arithmetic's operations, slices included."""
        pairs = self.values.derivations
        known = self.inside[pairs.target] & (pairs.kind != Derivation.IN_PLACE)
        return pairs.source[known], pairs.target[known]

    @cached_property
    def reads(self) -> Mask:
        """Mark the reads, in the order of `DataflowValues.use`, that are part of this arithmetic."""
        (source, target), values = self._pairs, self.values
        # Some pairs are no reads: slices, and a loop's carries.
        return np.isin(read_keys(values.used_value, values.use), read_keys(source, values.producer[target]))

    def from_arguments(self, arguments: I32) -> Mask:
        """Mark the values that are computed element by element from one of the arguments."""
        source, target = self._pairs
        entering, to = self.values.loop_carried
        inside = self.inside[to]
        along = CsrGraph.of(np.r_[source, entering[inside]], np.r_[target, to[inside]], len(self.values))
        return along.reach(arguments)

    def sources(self, op: Text) -> Mask:
        """Mark the values that enter the arithmetic from outside, whole or in slices. `op`: opcodes by position."""
        values, n = self.values, len(self.values)
        source, target = self._pairs
        entered = marked(n, target)
        entered[values.loop_carried[1]] = True
        found = self.inside & ~entered & (values.producer >= 0)
        found[source[~self.inside[source]]] = True
        return found & self._computed(op)

    def fused_operands(self, op: Text, reads: Mask) -> Mask:
        """Mark the operands of computations that the compiler fused with the arithmetic, such as a gradient's product.

        `reads` marks the reads that are part of any update's arithmetic.
        """
        values, used = self.values, self.values.used_value
        computes = np.isin(values.use, values.producer[self._pairs[1]])  # per read: its position is of the arithmetic
        found = marked(len(values), used[computes & ~reads & (values.elements[used] > 1)])
        # A value is prefetched in slices.
        pairs = values.derivations
        found[pairs.target[(pairs.kind == Derivation.PART) & self.inside[pairs.source]]] = False
        return found & self._computed(op)

    def _computed(self, op: Text) -> Mask:
        without_operands = op.isin(WITHOUT_OPERANDS)
        producer = self.values.producer
        return (producer >= 0) & ~without_operands[producer] & (self.values.argument < 0)
