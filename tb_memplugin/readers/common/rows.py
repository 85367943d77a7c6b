"""Rows of a table by their ids, pairs of allocations and frees by address, and distinct values."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.native.graph.pairing import partners
from tb_memplugin.native.protobuf.ids import rows_in_order, rows_in_table, table_of


class IdIndex:
    """Rows of a table by their ids, which need not be unique: the first row of an id wins."""

    def __init__(self, ids: I64) -> None:
        self.low = int(ids.min(initial=0))
        span = int(ids.max(initial=0)) - self.low + 1
        # Most compilers number densely. A lookup table then takes one step where a binary search takes about twenty.
        self.dense = span <= 4 * len(ids) + 1024
        if self.dense:
            self.table = table_of(ids, self.low, span)
        else:
            self.order = np.argsort(ids, kind="stable")
            self.sorted = ids[self.order]

    def rows(self, wanted: I64) -> I32:
        """Return the row of each wanted id, -1 where the table has no such id."""
        if self.dense:
            return rows_in_table(self.table, self.low, wanted)
        return rows_in_order(self.sorted, self.order, wanted)


class Pairs(NamedTuple):
    """Partners of events ordered by time: for an allocation the event that ends it, for a free its allocation.

    -1 is no partner. An allocation at an address in use ends the earlier one there; `address_taken` counts those.
    """

    partner: I64
    address_taken: int


def pair(address: I64, frees: Mask, known: Mask) -> Pairs:
    """Pair each free with the latest allocation at its address. Events without a `known` address have no partner."""
    return Pairs(*partners(np.ascontiguousarray(address), frees.view(np.uint8), known.view(np.uint8)))


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct values, sorted. np.unique imports numpy.ma for this, which takes as long as a small file."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
