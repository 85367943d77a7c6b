"""Which allocations are one site's: the same thing, allocated at the same place of the program."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.tables import Allocations


def group_by_site(rows: Allocations, which: I64, *, sized: bool = True) -> tuple[I64, int]:
    """The site of each of the rows, 0..k-1, and k. A place is a stack, where it is known, and an op or name.

    `sized`: what is of different shape, type or size there is different sites.
    """
    place = (rows.stack, rows.op.codes, rows.name.codes)
    thing = (rows.shape.codes, rows.dtype.codes, rows.requested) if sized else ()
    key, kinds = np.zeros(len(which), dtype=np.int64), 1
    for column in (*place, *thing):
        part = column[which].astype(np.int64)
        part -= part.min(initial=0)
        width = int(part.max(initial=0)) + 1
        if width > 2**20:  # sizes: few different ones, wide apart
            part, width = _number(part)
        if kinds > 2**62 // width:
            key, kinds = _number(key)
        key, kinds = key * width + part, kinds * width
    return _number(key)


def _number(values: I64) -> tuple[I64, int]:
    """Equal values get the same number, 0..k-1 in their order, and k (1 of nothing)."""
    different, number = np.unique(values, return_inverse=True)
    return number.astype(np.int64), max(len(different), 1)
