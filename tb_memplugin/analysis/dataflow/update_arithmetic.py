"""The element-by-element arithmetic that updates arguments, and the values that enter it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph, read_keys
from tb_memplugin.model.arrays import I32, Mask
from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.text import Text

WITHOUT_OPERANDS = {"broadcast", "constant", "iota"}  # a learning rate broadcast to the gradient's shape is no gradient


@dataclass(frozen=True, eq=False)
class UpdateArithmetic:
    """The values that some results are computed from element by element, back to arguments and other sources."""

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
        source, target = self._pairs
        values, found = self.values, np.zeros(len(self.values.use) + 1, dtype=bool)
        # Reads are in order of value, then position, so the key rises.
        keys, wanted = read_keys(values.used_value, values.use), read_keys(source, values.producer[target])
        at = np.searchsorted(keys, wanted)
        at[np.r_[keys, -1][at] != wanted] = len(keys)  # not a read: a slice, or a loop's carry
        found[at] = True
        return found[:-1]

    @property
    def _computes(self) -> Mask:
        """Mark the positions that compute part of this arithmetic."""
        _, target = self._pairs
        making = np.zeros(int(self.values.producer.max(initial=-1)) + 1, dtype=bool)
        making[self.values.producer[target]] = True
        padded: Mask = np.r_[making, np.zeros(int(self.values.use.max(initial=-1)) + 1, dtype=bool)]
        return padded

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
        entered = np.zeros(n, dtype=bool)
        entered[target] = True
        entered[values.loop_carried[1]] = True
        found = self.inside & ~entered & (values.producer >= 0)
        found[source[~self.inside[source]]] = True
        return found & self._computed(op)

    def fused_operands(self, op: Text, reads: Mask) -> Mask:
        """Mark the operands of computations that the compiler fused with the arithmetic, as a gradient's product.

        `reads` marks the reads that are part of any update's arithmetic.
        """
        values = self.values
        reader = values.used_value
        found = np.zeros(len(values), dtype=bool)
        found[reader[self._computes[values.use] & ~reads & (values.elements[reader] > 1)]] = True
        # A value is prefetched in slices.
        pairs = values.derivations
        found[pairs.target[(pairs.kind == Derivation.PART) & self.inside[pairs.source]]] = False
        return found & self._computed(op)

    def _computed(self, op: Text) -> Mask:
        without_operands = op.isin(WITHOUT_OPERANDS)
        producer = self.values.producer
        computed: Mask = (producer >= 0) & ~without_operands[producer] & (self.values.argument < 0)
        return computed
