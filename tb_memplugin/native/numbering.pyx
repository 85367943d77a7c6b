"""Numbers of distinct integers, in linear time."""
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.hashing cimport Numbering

cdef enum:
    SPREAD = 4    # if the range of values is at most so many times their count, a table of the range numbers them


def number_values(const int64_t[::1] values) -> tuple[I64, I64]:
    """Return (distinct values, sorted; index of each value in them)."""
    cdef Py_ssize_t n = values.shape[0], i
    cdef int64_t least = values[0] if n else 0, most = least, used = 0
    cdef uint64_t span
    cdef vector[int64_t] number
    cdef Numbering numbering
    codes = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] code = codes
    cdef int64_t[::1] view
    with nogil:
        for i in range(n):
            least, most = min(least, values[i]), max(most, values[i])
    span = <uint64_t>most - <uint64_t>least
    if span <= <uint64_t>SPREAD * n:
        with nogil:
            number.resize(span + 1, 0)
            for i in range(n):
                number[values[i] - least] = 1
            for i in range(<Py_ssize_t>span + 1):
                used += number[i]
                number[i] = used - 1 if number[i] else -1
            for i in range(n):
                code[i] = number[values[i] - least]
        distinct = np.empty(used if n else 0, dtype=np.int64)
        view = distinct
        with nogil:
            for i in range(<Py_ssize_t>span + 1 if n else 0):
                if number[i] >= 0:
                    view[number[i]] = least + i
        return distinct, codes
    with nogil:
        for i in range(n):
            code[i] = numbering.number(values[i])
    distinct = array_of[int64_t](numbering.keys)
    order = np.argsort(distinct)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    view = rank
    with nogil:
        for i in range(n):
            code[i] = view[code[i]]
    return distinct[order], codes
