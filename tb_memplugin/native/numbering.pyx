"""Numbers of distinct integers, in linear time."""
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

import secrets

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.hashing cimport mixed

cdef enum:
    SPREAD = 4    # if the range of values is at most so many times their count, a table of the range numbers them


cdef class _Numbering:
    """Distinct integers by order of first appearance, in a hash table."""
    cdef vector[int64_t] distinct
    cdef vector[int64_t] slots      # open addressing: 1 + number of a value; 0: free
    cdef uint64_t salt              # so that a file cannot contain values that collide

    cdef inline size_t slot_of(self, int64_t value) noexcept nogil:
        return mixed(<uint64_t>value, self.salt) & (self.slots.size() - 1)

    cdef int64_t number(self, int64_t value) except -1 nogil:
        cdef size_t slot = self.slot_of(value), i
        while self.slots[slot]:
            if self.distinct[self.slots[slot] - 1] == value:
                return self.slots[slot] - 1
            slot = (slot + 1) & (self.slots.size() - 1)
        self.distinct.push_back(value)
        self.slots[slot] = self.distinct.size()
        if self.distinct.size() * 2 > self.slots.size():
            self.slots.assign(self.slots.size() * 4, 0)
            for i in range(self.distinct.size()):
                slot = self.slot_of(self.distinct[i])
                while self.slots[slot]:
                    slot = (slot + 1) & (self.slots.size() - 1)
                self.slots[slot] = i + 1
        return self.distinct.size() - 1


def number_values(const int64_t[::1] values) -> tuple[I64, I64]:
    """Return (distinct values, sorted; index of each value in them)."""
    cdef Py_ssize_t n = values.shape[0], i
    cdef int64_t least = values[0] if n else 0, most = least, used = 0
    cdef uint64_t span
    cdef vector[int64_t] number
    cdef _Numbering numbering
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
    numbering = _Numbering()
    numbering.salt = secrets.randbits(64)
    with nogil:
        numbering.slots.resize(1024, 0)
        for i in range(n):
            code[i] = numbering.number(values[i])
    distinct = array_of[int64_t](numbering.distinct)
    order = np.argsort(distinct)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    view = rank
    with nogil:
        for i in range(n):
            code[i] = view[code[i]]
    return distinct[order], codes
