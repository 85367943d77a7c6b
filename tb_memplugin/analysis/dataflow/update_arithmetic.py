"""The arithmetic by which results come of their arguments element by element, and what enters it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_memplugin.analysis.dataflow.graph import CsrGraph, Mask
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.text import Text

WITHOUT_OPERANDS = {"broadcast", "constant", "iota"}  # a rate that was given the gradient's shape is no gradient


@dataclass(frozen=True, eq=False)
class UpdateArithmetic:
    """What some results come of, element by element: back to arguments, and to what was made in another way."""

    values: DataflowValues
    inside: Mask  # per value

    @staticmethod
    def of(values: DataflowValues, results: I32) -> UpdateArithmetic:
        whole = values.derivations.kind == Derivation.ELEMENTWISE
        back = CsrGraph.of(
            np.r_[values.derivations.target[whole], values.loop_carried[1]].astype(np.int32),
            np.r_[values.derivations.source[whole], values.loop_carried[0]].astype(np.int32),
            len(values),
        )
        return UpdateArithmetic(values, back.reach(results))

    @property
    def _pairs(self) -> tuple[I32, I32]:
        """(source, target) of what happens inside, with what is taken a part of."""
        pairs = self.values.derivations
        known = self.inside[pairs.target] & (pairs.kind != Derivation.IN_PLACE)
        return pairs.source[known], pairs.target[known]

    @cached_property
    def reading(self) -> Mask:
        """Per read, in the order of `DataflowValues.use`: whether it is this arithmetic that reads."""
        source, target = self._pairs
        values, found = self.values, np.zeros(len(self.values.use) + 1, dtype=bool)
        # Reads come by value, then position: the key rises.
        keys, wanted = _key(values.used_value, values.use), _key(source, values.producer[target])
        at = np.searchsorted(keys, wanted)
        at[np.r_[keys, -1][at] != wanted] = len(keys)  # a part of it is read, or it is carried
        found[at] = True
        return found[:-1]

    @property
    def _making(self) -> Mask:
        """Per position: whether any of this arithmetic is done there."""
        _, target = self._pairs
        making = np.zeros(int(self.values.producer.max(initial=-1)) + 1, dtype=bool)
        making[self.values.producer[target]] = True
        padded: Mask = np.r_[making, np.zeros(int(self.values.use.max(initial=-1)) + 1, dtype=bool)]
        return padded

    def of_arguments(self, arguments: I32) -> Mask:
        """Per value inside: whether it comes of one of the arguments, element by element."""
        source, target = self._pairs
        fro, to = self.values.loop_carried
        inside = self.inside[to]
        along = CsrGraph.of(np.r_[source, fro[inside]], np.r_[target, to[inside]], len(self.values))
        return along.reach(arguments)

    def sources(self, op: Text, reading: Mask) -> Mask:
        """Per value: whether it enters from outside: as a whole, in parts, or as what the arithmetic's own
        instructions work it out from, where the compiler fused the two.

        `op` is the opcode of each position; `reading` marks the reads that are some update's arithmetic.
        """
        values, n = self.values, len(self.values)
        source, target = self._pairs
        entered = np.zeros(n, dtype=bool)
        entered[target] = True
        entered[values.loop_carried[1]] = True
        nothing = np.array([op.strings[i] in WITHOUT_OPERANDS for i in range(len(op.strings))] + [False])
        found = self.inside & ~entered & (values.producer >= 0)
        found[source[~self.inside[source]]] = True
        reader = values.used_value
        fused = self._making[values.use] & ~reading & (values.elements[reader] > 1)
        found[reader[fused]] = True
        kind_less = np.where(values.producer >= 0, nothing[op.codes[values.producer]], True)
        return found & ~kind_less & (values.argument < 0)


def _key(value: I32, position: I32) -> I64:
    key: I64 = value.astype(np.int64) * 2**31 + position
    return key
