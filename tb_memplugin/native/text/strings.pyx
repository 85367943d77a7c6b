"""Interning and joining of text columns, on raw bytes."""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.hashing cimport hash_of_text


cdef enum:
    FIRST_SLOTS = 1 << 10  # a power of 2
    BLOCK = 64  # strings hashed together, so that a processor waits for the memory of several lookups at once


cdef struct Slot:
    uint64_t hash
    int64_t start    # of the first string of these bytes
    int64_t length
    int32_t number   # of the string, from 1; 0: a free slot


cdef class Interner:
    """Assigns codes to byte strings, from 0 in order of first appearance over all calls.

    A hash table with linear probing, at most half full. It compares hashes first, because bytes are all over the input.
    """
    cdef const unsigned char[::1] view
    cdef const unsigned char* base
    cdef vector[Slot] slots
    cdef int32_t count

    def __init__(self, data: Buffer) -> None:
        self.view = data
        self.base = &self.view[0] if self.view.shape[0] else NULL
        self.slots.resize(FIRST_SLOTS)

    cdef int32_t code(self, uint64_t hash, int64_t start, int64_t length) except -2 nogil:
        cdef uint64_t mask = self.slots.size() - 1
        cdef size_t at = hash & mask
        cdef Slot* slot = &self.slots[at]
        while slot.number:
            if (
                slot.hash == hash and slot.length == length
                and memcmp(self.base + slot.start, self.base + start, length) == 0
            ):
                return slot.number - 1
            at = (at + 1) & mask
            slot = &self.slots[at]
        self.count += 1
        slot.hash, slot.start, slot.length, slot.number = hash, start, length, self.count
        if self.count * <size_t>2 > self.slots.size():
            self.grow()
        return self.count - 1

    cdef int grow(self) except -1 nogil:
        cdef vector[Slot] old
        cdef size_t i, at
        old.swap(self.slots)
        self.slots.resize(2 * old.size())
        for i in range(old.size()):
            if old[i].number:
                at = old[i].hash & (self.slots.size() - 1)
                while self.slots[at].number:
                    at = (at + 1) & (self.slots.size() - 1)
                self.slots[at] = old[i]
        return 0

    def add(self, const int64_t[::1] start, const int64_t[::1] length) -> tuple[I32, I64]:
        """Return (code of each span, rows of spans that are new); an empty span has code -1."""
        cdef Py_ssize_t n = start.shape[0], i
        codes_array = np.empty(n, dtype=np.int32)
        cdef int32_t[::1] codes = codes_array
        cdef vector[int64_t] first
        cdef uint64_t[BLOCK] hashes
        cdef Py_ssize_t begin, block
        cdef int32_t known
        with nogil:
            for block in range((n + BLOCK - 1) // BLOCK):
                begin = block * BLOCK
                for i in range(begin, min(begin + BLOCK, n)):
                    hashes[i - begin] = hash_of_text(string_view(<const char*>self.base + start[i], length[i]))
                for i in range(begin, min(begin + BLOCK, n)):
                    if length[i] == 0:
                        codes[i] = -1
                        continue
                    known = self.count
                    codes[i] = self.code(hashes[i - begin], start[i], length[i])
                    if self.count > known:
                        first.push_back(i)
        return codes_array, array_of[int64_t](first)


def intern(data: Buffer, const int64_t[::1] start, const int64_t[::1] length) -> tuple[I32, I64]:
    """Return (code of each span, first row of each code); an empty span has code -1."""
    return Interner(data).add(start, length)


def gather(data: Buffer, const int64_t[::1] start, const int64_t[::1] length) -> tuple[bytes, I64]:
    """Return (blob, offsets) of the concatenated spans."""
    cdef const unsigned char[::1] view = data
    cdef Py_ssize_t n = start.shape[0], i
    offsets_array = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(length, out=offsets_array[1:])
    cdef const int64_t[::1] offsets = offsets_array
    cdef bytearray blob = bytearray(int(offsets_array[n]))
    cdef unsigned char[::1] target = blob
    with nogil:
        for i in range(n):
            if length[i]:
                memcpy(&target[offsets[i]], &view[start[i]], length[i])
    return bytes(blob), offsets_array


def join(left_blob: bytes, const int64_t[::1] left_offsets, const int32_t[::1] left, right_blob: bytes,
         const int64_t[::1] right_offsets, const int32_t[::1] right) -> tuple[bytes, I64]:
    """Return (blob, offsets) of the texts `left[row]` + `right[row]`; index -1 is the empty text."""
    cdef const unsigned char[::1] a = left_blob
    cdef const unsigned char[::1] b = right_blob
    cdef Py_ssize_t n = left.shape[0], i
    cdef int64_t size, at
    offsets_array = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t[::1] offsets = offsets_array
    for i in range(n):
        size = 0
        if left[i] >= 0:
            size += left_offsets[left[i] + 1] - left_offsets[left[i]]
        if right[i] >= 0:
            size += right_offsets[right[i] + 1] - right_offsets[right[i]]
        offsets[i + 1] = offsets[i] + size
    cdef bytearray blob = bytearray(int(offsets_array[n]))
    cdef unsigned char[::1] target = blob
    with nogil:
        for i in range(n):
            at = offsets[i]
            if left[i] >= 0:
                size = left_offsets[left[i] + 1] - left_offsets[left[i]]
                if size:
                    memcpy(&target[at], &a[left_offsets[left[i]]], size)
                    at += size
            if right[i] >= 0:
                size = right_offsets[right[i] + 1] - right_offsets[right[i]]
                if size:
                    memcpy(&target[at], &b[right_offsets[right[i]]], size)
    return bytes(blob), offsets_array
