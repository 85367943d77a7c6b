"""Allocations grouped by call site."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.tables import Allocations


def group_by_site(rows: Allocations, which: I64, *, sized: bool = True) -> tuple[I64, int]:
    """Return the site number of each row in `which`, 0..k-1, and k.

    A site is a stack, op and name; with `sized`, also a shape, dtype and size.
    """
    code = (rows.stack, rows.op.codes, rows.name.codes)
    content = (rows.shape.codes, rows.dtype.codes, rows.requested) if sized else ()
    key, kinds = np.zeros(len(which), dtype=np.int64), 1
    for column in (*code, *content):
        part = column[which].astype(np.int64)
        part -= part.min(initial=0)
        width = int(part.max(initial=0)) + 1
        if width > 2**20:  # sizes: few distinct values over a wide range
            part, width = _number(part)
        if kinds > 2**62 // width:
            key, kinds = _number(key)
        key, kinds = key * width + part, kinds * width
    return _number(key)


def _number(values: I64) -> tuple[I64, int]:
    """Number the distinct values 0..k-1 in order. Return each value's number, and k (at least 1)."""
    different, number = np.unique(values, return_inverse=True)
    return number.astype(np.int64), max(len(different), 1)
