# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language = c++
"""Interning and joining of text columns, on the bytes they came in."""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char*, size_t)


def intern(data, const int64_t[::1] start, const int64_t[::1] length):
    """(code of each span, row of the first span with each code): equal bytes get equal codes; empty gets -1."""
    cdef const unsigned char[::1] view = data
    cdef Py_ssize_t n = start.shape[0], i
    codes_array = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] codes = codes_array
    cdef unordered_map[string_view, int32_t] seen
    cdef vector[int64_t] first
    cdef string_view key
    cdef const char* base = <const char*>&view[0] if view.shape[0] else NULL
    cdef int32_t code
    with nogil:
        for i in range(n):
            if length[i] == 0:
                codes[i] = -1
                continue
            key = string_view(base + start[i], length[i])
            found = seen.find(key)
            if found == seen.end():
                code = <int32_t>first.size()
                seen[key] = code
                first.push_back(i)
                codes[i] = code
            else:
                codes[i] = seen[key]
    first_array = np.empty(first.size(), dtype=np.int64)
    cdef int64_t[::1] out = first_array
    for i in range(<Py_ssize_t>first.size()):
        out[i] = first[i]
    return codes_array, first_array


def gather(data, const int64_t[::1] start, const int64_t[::1] length):
    """(blob, offsets) of the spans, end to end."""
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
    """(blob, offsets): for each row the text `left[row]` followed by `right[row]`; -1 is the empty text."""
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
