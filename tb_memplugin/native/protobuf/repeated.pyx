"""A repeated number field of many messages, as one concatenated column."""
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.protobuf.fields cimport Item, item, varint

from tb_memplugin.native.charges import exceeded, left_of

VALUE_BYTES = 40  # per value at most: the growing column, its copy, and the readers' column


def numbers(data: Buffer, const int64_t[::1] start, const int64_t[::1] length, uint64_t field,
            budget: Charges | None = None) -> tuple[I64, I64]:
    """Return (count per message, values) of the varints in field `field`, packed or not, as signed 64 bits.

    Raises ValueError with the byte offset where the bytes are no message, and the error of `budget` if the values take
    more memory than it has left. They are not charged, because readers work through a file in batches.
    """
    cdef const unsigned char[::1] view = data
    cdef Py_ssize_t n = start.shape[0], i
    cdef const unsigned char* base = NULL
    cdef const unsigned char* p
    cdef const unsigned char* end
    cdef const unsigned char* q
    cdef const unsigned char* stop
    cdef const unsigned char* broken = NULL
    cdef Item found
    cdef uint64_t value = 0
    cdef vector[int64_t] values
    counts_array = np.zeros(n, dtype=np.int64)
    cdef int64_t[::1] counts = counts_array
    cdef size_t before
    cdef size_t most = left_of(budget, np.asarray(length).sum()) // VALUE_BYTES
    if view.shape[0]:
        base = &view[0]
    with nogil:
        for i in range(n):
            before = values.size()
            p = base + start[i]
            end = p + length[i]
            while p < end and broken == NULL:
                q = p
                if not item(&p, end, &found):
                    broken = q
                elif found.number != field:
                    continue
                elif found.at == NULL:
                    values.push_back(<int64_t>found.value)
                else:
                    q = found.at
                    stop = found.at + found.value
                    while q < stop:
                        if not varint(&q, stop, &value):
                            broken = q
                            break
                        values.push_back(<int64_t>value)
                        if values.size() > most:
                            break
                if values.size() > most:
                    break
            if broken != NULL or values.size() > most:
                break
            counts[i] = values.size() - before
    if values.size() > most:
        raise exceeded(budget)
    if broken != NULL:
        raise ValueError(f"not a valid message at byte {broken - base} of {view.shape[0]}")
    return counts_array, array_of[int64_t](values)
