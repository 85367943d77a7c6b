"""Free bytes between blocks over time: the longest free run and the total, at every position."""
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.numbering import number_values


cdef struct Node:
    int64_t covered     # number of blocks that cover the whole node
    int64_t size        # bytes
    int64_t total       # free bytes below the node: all, in the longest run, and in the runs at both ends
    int64_t longest
    int64_t first
    int64_t last


cdef class _Tree:
    """A segment tree over the places between block edges. Node i has the children 2 i and 2 i + 1; leaves come last."""
    cdef vector[Node] nodes
    cdef size_t leaves      # a power of two

    cdef int build(self, const int64_t[::1] place) except -1 nogil:
        cdef size_t i, count = place.shape[0] - 1
        self.leaves = 1
        while self.leaves < count:
            self.leaves *= 2
        self.nodes.resize(2 * self.leaves)
        for i in range(count):
            self.nodes[self.leaves + i].size = place[i + 1] - place[i]
        for i in range(2 * self.leaves - 1, 0, -1):
            if i < self.leaves:
                self.nodes[i].size = self.nodes[2 * i].size + self.nodes[2 * i + 1].size
            self.sum_up(i)
        return 0

    cdef void cover(self, size_t start, size_t stop, int64_t by) noexcept nogil:
        """Add `by` blocks over the leaves from start to stop."""
        cdef size_t low = start + self.leaves, high = stop + self.leaves, first = low, last = high - 1
        if start >= stop:
            return
        while low < high:
            if low & 1:
                self.nodes[low].covered += by
                self.sum_up(low)
                low += 1
            if high & 1:
                high -= 1
                self.nodes[high].covered += by
                self.sum_up(high)
            low >>= 1
            high >>= 1
        while first > 1:
            first >>= 1
            last >>= 1
            self.sum_up(first)
            if last != first:
                self.sum_up(last)

    cdef inline void sum_up(self, size_t number) noexcept nogil:
        cdef Node* whole = &self.nodes[number]
        cdef const Node* left
        cdef const Node* right
        if whole.covered:
            whole.total = whole.longest = whole.first = whole.last = 0
        elif number >= self.leaves:
            whole.total = whole.longest = whole.first = whole.last = whole.size
        else:
            left, right = &self.nodes[2 * number], &self.nodes[2 * number + 1]
            whole.total = left.total + right.total
            whole.longest = max(max(left.longest, right.longest), left.last + right.first)
            whole.first = left.first + (right.first if left.first == left.size else 0)
            whole.last = right.last + (left.last if right.last == right.size else 0)


def free_runs(const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] low, const int64_t[::1] high,
              int64_t space, int64_t length) -> tuple[I64, I64]:
    """Return (longest free run, total free bytes) of [0, space) at each of `length` positions.

    Block i occupies [low, high), within the space, at the positions start <= p < end.
    """
    cdef _Tree tree = _Tree()
    cdef int64_t position, i
    cdef Py_ssize_t count = start.shape[0]
    cdef vector[int64_t] born, gone, next_born, next_gone    # lists of blocks by position: the first, and the next; -1
    place, where = number_values(np.r_[0, space, low, high])
    longest_array, total_array = np.zeros(length, dtype=np.int64), np.zeros(length, dtype=np.int64)
    if space <= 0:
        return longest_array, total_array
    cdef int64_t[::1] longest = longest_array
    cdef int64_t[::1] total = total_array
    cdef const int64_t[::1] from_place = where[2 : 2 + count]
    cdef const int64_t[::1] to_place = where[2 + count :]
    cdef const int64_t[::1] places = place
    with nogil:
        tree.build(places)
        born.resize(length, -1)
        gone.resize(length, -1)
        next_born.resize(count)
        next_gone.resize(count)
        for i in range(count):
            if end[i] <= 0 or start[i] >= end[i] or start[i] >= length:
                continue    # a block that ends before it starts never existed
            position = max(start[i], 0)
            next_born[i] = born[position]
            born[position] = i
            if end[i] < length:
                next_gone[i] = gone[end[i]]
                gone[end[i]] = i
        for position in range(length):
            i = born[position]
            while i >= 0:
                tree.cover(from_place[i], to_place[i], 1)
                i = next_born[i]
            i = gone[position]
            while i >= 0:
                tree.cover(from_place[i], to_place[i], -1)
                i = next_gone[i]
            longest[position] = tree.nodes[1].longest
            total[position] = tree.nodes[1].total
    return longest_array, total_array
