"""Pairs of allocations and frees, by address."""
import os

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.hashing cimport mixed

cdef enum:
    FIRST_SLOTS = 1 << 10  # a power of 2


cdef struct Slot:
    int64_t address
    int64_t event    # the number of the allocation there, from 1; 0: a free slot


cdef class _Live:
    """The live allocations by address: a hash table with linear probing, at most half full."""
    cdef vector[Slot] slots
    cdef size_t count
    cdef uint64_t salt

    def __init__(self):
        self.salt = int.from_bytes(os.urandom(8), "little")
        self.slots.resize(FIRST_SLOTS)

    cdef size_t home(self, int64_t address) noexcept nogil:
        return mixed(<uint64_t>address, self.salt) & (self.slots.size() - 1)

    cdef size_t find(self, int64_t address) noexcept nogil:
        """Return the slot of the address, or the free slot where it belongs."""
        cdef size_t at = self.home(address)
        while self.slots[at].event and self.slots[at].address != address:
            at = (at + 1) & (self.slots.size() - 1)
        return at

    cdef int add(self, size_t at, int64_t address, int64_t event) except -1 nogil:
        """Write an allocation to the free slot of its address."""
        self.slots[at].address = address
        self.slots[at].event = event
        self.count += 1
        if self.count * 2 > self.slots.size():
            self.grow()
        return 0

    cdef int grow(self) except -1 nogil:
        cdef vector[Slot] old
        cdef size_t i
        old.swap(self.slots)
        self.slots.resize(2 * old.size())
        for i in range(old.size()):
            if old[i].event:
                self.slots[self.find(old[i].address)] = old[i]
        return 0

    cdef void remove(self, size_t at) noexcept nogil:
        """Free a slot, and move later entries that a search would no longer find behind the free slot."""
        cdef size_t mask = self.slots.size() - 1, free = at
        self.count -= 1
        while True:
            at = (at + 1) & mask
            if not self.slots[at].event:
                break
            if ((at - self.home(self.slots[at].address)) & mask) >= ((at - free) & mask):
                self.slots[free] = self.slots[at]
                free = at
        self.slots[free].event = 0


def partners(const int64_t[::1] address, const uint8_t[::1] frees, const uint8_t[::1] known) -> tuple[I64, int]:
    """Return the partner of each event, as Pairs, and the number of allocations at an address in use."""
    cdef Py_ssize_t i
    cdef int64_t taken = 0, before
    cdef size_t at
    cdef _Live live = _Live()
    partner_array = np.full(address.shape[0], -1, dtype=np.int64)
    cdef int64_t[::1] partner = partner_array
    with nogil:
        for i in range(address.shape[0]):
            if not known[i]:
                continue
            at = live.find(address[i])
            before = live.slots[at].event - 1
            if before >= 0:
                partner[before] = i
            if not frees[i]:
                if before >= 0:
                    live.slots[at].event = i + 1
                    taken += 1
                else:
                    live.add(at, address[i], i + 1)
            elif before >= 0:
                partner[i] = before
                live.remove(at)
    return partner_array, taken
