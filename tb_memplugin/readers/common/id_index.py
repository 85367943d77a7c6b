"""Table rows by id."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64
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
