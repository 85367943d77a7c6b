# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Interning and joining of text columns, on raw bytes."""
from cython.operator cimport dereference
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp.string_view cimport string_view
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.containers cimport put


cdef class Interner:
    """Assigns codes to byte strings, from 0 in order of first appearance over all calls."""
    cdef const unsigned char[::1] view
    cdef unordered_map[string_view, int32_t] seen

    def __init__(self, data):
        self.view = data

    def add(self, const int64_t[::1] start, const int64_t[::1] length):
        """Return (code of each span, rows of spans that are new); an empty span has code -1."""
        cdef Py_ssize_t n = start.shape[0], i
        codes_array = np.empty(n, dtype=np.int32)
        cdef int32_t[::1] codes = codes_array
        cdef vector[int64_t] first
        cdef const char* base = <const char*>&self.view[0] if self.view.shape[0] else NULL
        cdef string_view key
        cdef int32_t known
        with nogil:
            for i in range(n):
                if length[i] == 0:
                    codes[i] = -1
                    continue
                key = string_view(base + start[i], length[i])
                found = self.seen.find(key)
                if found != self.seen.end():
                    codes[i] = dereference(found).second
                    continue
                known = <int32_t>self.seen.size()
                put(self.seen, key, known)
                codes[i] = known
                first.push_back(i)
        first_array = np.empty(first.size(), dtype=np.int64)
        cdef int64_t[::1] out = first_array
        for i in range(<Py_ssize_t>first.size()):
            out[i] = first[i]
        return codes_array, first_array


def intern(data, const int64_t[::1] start, const int64_t[::1] length):
    """Return (code of each span, first row of each code); an empty span has code -1."""
    return Interner(data).add(start, length)


def gather(data, const int64_t[::1] start, const int64_t[::1] length):
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


def join(left_blob, const int64_t[::1] left_offsets, const int32_t[::1] left,
         right_blob, const int64_t[::1] right_offsets, const int32_t[::1] right):
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
