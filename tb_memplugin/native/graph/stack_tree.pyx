"""Tree of call stacks: stacks with the same outer frames share nodes."""
import os

from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.hashing cimport mixed

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
    cdef vector[int32_t] parent, label   # per node
    cdef vector[uint64_t] key            # hash table of children, 0 where free: (parent + 1, frame + 1)
    cdef vector[int32_t] child
    cdef vector[int32_t] last_frame, last_node   # of the stack added last, outermost first
    cdef uint64_t salt                   # writers of files do not know it, and so cannot write keys that collide
    cdef object budget
    cdef int64_t left                    # bytes that further nodes may take

    def __init__(self, const int64_t[::1] first, const int32_t[::1] frame, budget: Charges | None = None) -> None:
        self.budget = budget
        self.first = first
        self.frame = frame
        self.salt = int.from_bytes(os.urandom(8), "little")
        self.key.resize(1 << 12)
        self.child.resize(1 << 12)

    cdef int32_t below(self, int32_t node, int32_t frame) except -2 nogil:
        """Return the child of `node` (-1: the root) for `frame`; create it if it is missing."""
        cdef uint64_t wanted = (<uint64_t>(node + 2) << 32) | <uint64_t>(frame + 1)
        cdef uint64_t mask = self.key.size() - 1
        cdef uint64_t at = mixed(wanted, self.salt) & mask
        while self.key[at] != 0:
            if self.key[at] == wanted:
                return self.child[at]
            at = (at + 1) & mask
        self.key[at] = wanted
        self.child[at] = <int32_t>self.parent.size()
        self.parent.push_back(node)
        self.label.push_back(frame)
        self.left -= NODE_BYTES
        if self.parent.size() * 2 > self.key.size():
            self.grow()
        return <int32_t>self.parent.size() - 1

    cdef int grow(self) except -1 nogil:
        cdef vector[uint64_t] keys
        cdef vector[int32_t] children
        cdef uint64_t mask = self.key.size() * 2 - 1, at
        cdef size_t i
        keys.resize(mask + 1)
        children.resize(mask + 1)
        for i in range(self.key.size()):
            if self.key[i]:
                at = mixed(self.key[i], self.salt) & mask
                while keys[at]:
                    at = (at + 1) & mask
                keys[at] = self.key[i]
                children[at] = self.child[i]
        self.key.swap(keys)
        self.child.swap(children)
        return 0

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
        cdef vector[int32_t] parent = self.parent, label = self.label  # as more stacks may follow
        return array_of[int32_t](parent), array_of[int32_t](label)
