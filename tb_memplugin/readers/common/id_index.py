"""Rows of a table by the ids that other tables name them by."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64


class Index:
    """Rows by id. The first of equal ids wins."""

    def __init__(self, ids: I64) -> None:
        self.low = int(ids.min(initial=0))
        span = int(ids.max(initial=0)) - self.low + 1
        # Most compilers number densely: then a table answers in one step what a search takes twenty for.
        self.dense = span <= 4 * len(ids) + 1024
        if self.dense:
            self.table = np.full(span, -1, dtype=np.int32)
            self.table[ids[::-1] - self.low] = np.arange(len(ids) - 1, -1, -1)
        else:
            self.order = np.argsort(ids, kind="stable")
            self.sorted = ids[self.order]

    def rows(self, wanted: I64) -> I32:
        """The row of each wanted id, -1 where there is none."""
        if self.dense:
            inside = (wanted >= self.low) & (wanted < self.low + len(self.table))
            return np.where(inside, self.table[np.where(inside, wanted - self.low, 0)], -1).astype(np.int32)
        at = np.minimum(np.searchsorted(self.sorted, wanted), len(self.sorted) - 1)
        return np.where(self.sorted[at] == wanted, self.order[at], -1).astype(np.int32)
