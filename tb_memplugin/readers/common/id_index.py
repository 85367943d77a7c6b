"""Table rows by id."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64


class IdIndex:
    """Rows of a table by their ids, which need not be unique: the first row of an id wins."""

    def __init__(self, ids: I64) -> None:
        self.low = int(ids.min(initial=0))
        span = int(ids.max(initial=0)) - self.low + 1
        # Most compilers number densely. A lookup table then takes one step where a binary search takes about twenty.
        self.dense = span <= 4 * len(ids) + 1024
        if self.dense:
            self.table = np.full(span, -1, dtype=np.int32)
            self.table[ids[::-1] - self.low] = np.arange(len(ids) - 1, -1, -1)
        else:
            self.order = np.argsort(ids, kind="stable")
            self.sorted = ids[self.order]

    def rows(self, wanted: I64) -> I32:
        """Return the row of each wanted id, -1 where the table has no such id."""
        if self.dense:
            inside = (wanted >= self.low) & (wanted < self.low + len(self.table))
            return np.where(inside, self.table[np.where(inside, wanted - self.low, 0)], -1).astype(np.int32)
        position = np.minimum(np.searchsorted(self.sorted, wanted), len(self.sorted) - 1)
        return np.where(self.sorted[position] == wanted, self.order[position], -1).astype(np.int32)
