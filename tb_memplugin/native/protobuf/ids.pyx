"""Rows of a table by their ids."""
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np


def table_of(const int64_t[::1] ids, int64_t low, int64_t span) -> I32:
    """Return the first row of each id from `low` to `low + span - 1`, -1 where no row has it. No id is outside."""
    cdef Py_ssize_t i
    table_array = np.full(span, -1, dtype=np.int32)
    cdef int32_t[::1] table = table_array
    cdef uint64_t at
    with nogil:
        for i in range(ids.shape[0] - 1, -1, -1):
            at = <uint64_t>ids[i] - <uint64_t>low
            if at < <uint64_t>span:
                table[at] = <int32_t>i
    return table_array


def rows_in_table(const int32_t[::1] table, int64_t low, const int64_t[::1] wanted) -> I32:
    """Return the row of each wanted id from a table of `table_of`, -1 where there is none."""
    cdef Py_ssize_t n = wanted.shape[0], i
    cdef uint64_t at, span = table.shape[0]
    rows_array = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] rows = rows_array
    with nogil:
        for i in range(n):
            at = <uint64_t>wanted[i] - <uint64_t>low
            rows[i] = table[at] if at < span else -1
    return rows_array


def rows_in_order(const int64_t[::1] ids, const int64_t[::1] row, const int64_t[::1] wanted) -> I32:
    """Return the row of each wanted id from rising `ids`, each with its `row`; -1 where there is none.

    Consecutive wanted ids tend to be near each other, because operands are near their users. So each search begins
    where the last one ended, and doubles its steps.
    """
    cdef Py_ssize_t n = wanted.shape[0], m = ids.shape[0], i, low, high, middle, step, here = 0
    rows_array = np.full(n, -1, dtype=np.int32)
    cdef int32_t[::1] rows = rows_array
    cdef int64_t id
    if not m:
        return rows_array
    with nogil:
        for i in range(n):
            id = wanted[i]
            step = 1
            if ids[here] < id:  # the first id that is not below the wanted one is in (low, high]
                low = here
                high = here + 1
                while high < m and ids[high] < id:
                    low = high
                    step *= 2
                    high = min(high + step, m)
            else:
                high = here
                low = here - 1
                while low >= 0 and ids[low] >= id:
                    high = low
                    step *= 2
                    low = max(low - step, -1)
            while high - low > 1:
                middle = low + (high - low) // 2
                if ids[middle] < id:
                    low = middle
                else:
                    high = middle
            here = min(high, m - 1)
            if ids[here] == id:
                rows[i] = <int32_t>row[here]
    return rows_array
