"""Which allocations are one site's: the same place of the program, or where that is not known, the same thing."""

from __future__ import annotations

import numpy as np

from tb_memplugin.recording import I64, Allocations


def sites_of(rows: Allocations, which: I64, *, by_shape: bool = False) -> tuple[I64, int]:
    """The site of each of the rows, 0..k-1, and k: its stack where that is known, else what was allocated.

    `by_shape` tells the shapes of one stack apart.
    """
    stack = rows.stack[which].astype(np.int64)
    known = stack >= 0
    shape = rows.shape.codes[which].astype(np.int64)
    texts = [text.codes[which].astype(np.int64) for text in (rows.op, rows.name, rows.dtype)]
    hidden = [np.where(known, 0, column) for column in (*texts, rows.requested[which])]
    key, kinds = stack + 1, int(stack.max(initial=-1)) + 2
    for column in (*hidden, shape if by_shape else np.where(known, 0, shape)):
        column = column - column.min(initial=0)
        width = int(column.max(initial=0)) + 1
        if width > 2**20:  # sizes: few different ones, wide apart
            column, width = numbered(column)
        if kinds > 2**62 // width:
            key, kinds = numbered(key)
        key, kinds = key * width + column, kinds * width
    return numbered(key)


def numbered(values: I64) -> tuple[I64, int]:
    """Equal values get the same number, 0..k-1 in their order, and k (1 of nothing)."""
    different, number = np.unique(values, return_inverse=True)
    return number.astype(np.int64), max(len(different), 1)
