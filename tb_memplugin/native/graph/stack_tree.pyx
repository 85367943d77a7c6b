"""Tree of call stacks: stacks with the same outer frames share nodes."""
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport pair_of, pairs_in
from tb_memplugin.native.hashing cimport Numbering

from tb_memplugin.native.charges import exceeded, left_of

cdef enum:
    NODE_BYTES = 128  # of a node: the growing columns and hash table, and the readers' columns
    STEP_BYTES = 1    # charged for each step, to limit the time: a few bytes may stand for a stack of any depth


cdef class Chains:
    """A growing tree of stacks of locations. A location is one frame, or several where calls were inlined.

    Location p has the frames `frame[first[p]:first[p + 1]]`, innermost first.
    """
    cdef const int64_t[::1] first
    cdef const int32_t[::1] frame
    cdef Numbering nodes                 # by parent and frame
    cdef vector[int32_t] last_frame, last_node   # of the stack added last, outermost first
    cdef object budget
    cdef int64_t left                    # bytes that further nodes may take

    def __init__(self, const int64_t[::1] first, const int32_t[::1] frame, budget: Charges | None = None) -> None:
        self.budget = budget
        self.first = first
        self.frame = frame

    cdef int32_t below(self, int32_t node, int32_t frame) except -2 nogil:
        """Return the child of `node` (-1: the root) for `frame`; create it if it is missing."""
        cdef size_t known = self.nodes.keys.size()
        cdef int32_t child = <int32_t>self.nodes.number(pair_of(node, frame))
        if self.nodes.keys.size() > known:
            self.left -= NODE_BYTES
        return child

    def add(self, const int64_t[::1] length, const int32_t[::1] place) -> I32:
        """Add stacks of `length` locations each, concatenated in `place`, innermost first; return leaves, -1 if empty.

        The nodes are charged to the budget, which raises its own error for too many.
        """
        cdef Py_ssize_t n = length.shape[0], i
        leaf_array = np.full(n, -1, dtype=np.int32)
        cdef int32_t[::1] leaf = leaf_array
        cdef int64_t begin = 0, p, f, before
        cdef size_t depth
        cdef int32_t node
        cdef bint same
        self.left = before = left_of(self.budget)
        with nogil:
            for i in range(n):
                node = -1
                depth = 0
                same = True  # Consecutive stacks often differ only in their innermost frames.
                for p in range(begin + length[i] - 1, begin - 1, -1):
                    for f in range(self.first[place[p] + 1] - 1, self.first[place[p]] - 1, -1):
                        if same and depth < self.last_frame.size() and self.last_frame[depth] == self.frame[f]:
                            node = self.last_node[depth]
                        else:
                            if same:
                                self.last_frame.resize(depth)
                                self.last_node.resize(depth)
                                same = False
                            node = self.below(node, self.frame[f])
                            self.last_frame.push_back(self.frame[f])
                            self.last_node.push_back(node)
                        depth += 1
                    self.left -= STEP_BYTES * (self.first[place[p] + 1] - self.first[place[p]])
                    if self.left < 0:
                        break
                if self.left < 0:
                    break
                begin += length[i]
                leaf[i] = node
        if self.left < 0:
            raise exceeded(self.budget)
        if self.budget is not None:
            self.budget.charge(before - self.left)
        return leaf_array

    def tree(self) -> tuple[I32, I32]:
        """Return (parent, frame) of each node; parents precede children, -1 is the root."""
        cdef vector[int64_t] keys = self.nodes.keys  # as more stacks may follow
        return pairs_in(keys)
