"""Pairs of allocations and frees, by address."""
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.hashing cimport Numbering


def partners(const int64_t[::1] address, const uint8_t[::1] frees, const uint8_t[::1] known) -> tuple[I64, int]:
    """Return the partner of each event, as Pairs, and the number of allocations at an address in use."""
    cdef Py_ssize_t i
    cdef int64_t taken = 0, before
    cdef size_t place
    cdef Numbering places
    cdef vector[int64_t] live    # the event of the live allocation at each place, or -1
    partner_array = np.full(address.shape[0], -1, dtype=np.int64)
    cdef int64_t[::1] partner = partner_array
    with nogil:
        for i in range(address.shape[0]):
            if not known[i]:
                continue
            place = places.number(address[i])
            if place == live.size():
                live.push_back(-1)
            before = live[place]
            if before >= 0:
                partner[before] = i
            if frees[i]:
                partner[i] = before
                live[place] = -1
            else:
                taken += before >= 0
                live[place] = i
    return partner_array, taken
