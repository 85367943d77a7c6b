# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Free bytes between blocks over time: the longest free run and the total, at every position."""
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

import numpy as np


cdef struct Node:
    int32_t covered     # blocks that cover all of this node but not all of its parent
    int64_t total       # free bytes. All figures ignore blocks that cover a parent.
    int64_t longest     # longest free run
    int64_t first       # free run at its start
    int64_t last        # free run at its end


cdef class _Tree:
    """A segment tree over the blocks' boundaries. Blocks may overlap; updates take O(log n)."""
    cdef vector[Node] nodes
    cdef const int64_t[::1] place

    cdef void build(self, size_t node, int64_t low, int64_t high) noexcept nogil:
        self.nodes[node].covered = 0
        if high - low > 1:
            self.build(2 * node, low, (low + high) // 2)
            self.build(2 * node + 1, (low + high) // 2, high)
        self.sum_up(node, low, high)

    cdef void cover(self, size_t node, int64_t low, int64_t high, int64_t start, int64_t stop, int32_t by) noexcept nogil:
        """Add `by` (1 or -1) to the cover of boundaries start..stop; the node spans low..high."""
        if stop <= low or high <= start:
            return
        if start <= low and high <= stop:
            self.nodes[node].covered += by
        else:
            self.cover(2 * node, low, (low + high) // 2, start, stop, by)
            self.cover(2 * node + 1, (low + high) // 2, high, start, stop, by)
        self.sum_up(node, low, high)

    cdef void sum_up(self, size_t node, int64_t low, int64_t high) noexcept nogil:
        cdef Node* whole = &self.nodes[node]
        cdef const Node* left
        cdef const Node* right
        cdef int64_t middle = (low + high) // 2
        if whole.covered:
            whole.total = whole.longest = whole.first = whole.last = 0
        elif high - low == 1:
            whole.total = whole.longest = whole.first = whole.last = self.place[high] - self.place[low]
        else:
            left, right = &self.nodes[2 * node], &self.nodes[2 * node + 1]
            whole.total = left.total + right.total
            whole.longest = max(max(left.longest, right.longest), left.last + right.first)
            whole.first = left.first
            if left.first == self.place[middle] - self.place[low]:
                whole.first += right.first
            whole.last = right.last
            if right.last == self.place[high] - self.place[middle]:
                whole.last += left.last


def free_runs(const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] low, const int64_t[::1] high,
              int64_t space, int64_t length):
    """Return (longest free run, total free bytes) of [0, space) at each of `length` positions.

    Block i occupies [low, high), within the space, at the positions start <= p < end.
    """
    cdef _Tree tree = _Tree()
    cdef int64_t position
    cdef Py_ssize_t born = 0, gone = 0, count = start.shape[0]
    place, where = np.unique(np.r_[0, space, low, high], return_inverse=True)
    longest_array, total_array = np.zeros(length, dtype=np.int64), np.zeros(length, dtype=np.int64)
    if space <= 0:
        return longest_array, total_array
    cdef int64_t[::1] longest = longest_array
    cdef int64_t[::1] total = total_array
    cdef const int64_t[::1] from_place = np.ascontiguousarray(where[2 : 2 + count])
    cdef const int64_t[::1] to_place = np.ascontiguousarray(where[2 + count :])
    cdef const int64_t[::1] by_start = np.argsort(start, kind="stable")
    cdef const int64_t[::1] by_end = np.argsort(end, kind="stable")
    cdef int64_t places = len(place) - 1
    tree.place = place
    tree.nodes.resize(4 * places)
    with nogil:
        tree.build(1, 0, places)
        for position in range(length):
            # A block that ends before it starts never existed.
            while born < count and start[by_start[born]] <= position:
                if end[by_start[born]] > position:
                    tree.cover(1, 0, places, from_place[by_start[born]], to_place[by_start[born]], 1)
                born += 1
            while gone < count and end[by_end[gone]] <= position:
                if start[by_end[gone]] < end[by_end[gone]] and end[by_end[gone]] > 0:
                    tree.cover(1, 0, places, from_place[by_end[gone]], to_place[by_end[gone]], -1)
                gone += 1
            longest[position] = tree.nodes[1].longest
            total[position] = tree.nodes[1].total
    return longest_array, total_array
