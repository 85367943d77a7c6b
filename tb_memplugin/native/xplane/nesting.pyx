"""Nesting of a host's events within their threads, which gives their call stacks."""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.containers cimport put
from tb_memplugin.native.hashing cimport Hash

cdef extern from *:
    """
    #include <algorithm>
    #include <cstdint>
    #include <vector>
    // Enclosing events first: by start, longest first, then in file order. Most files are already sorted.
    static void tbm_nest_order(std::vector<int32_t>& order, const int64_t* start, const int64_t* stop) {
        auto before = [=](int32_t a, int32_t b) {
            if (start[a] != start[b]) return start[a] < start[b];
            if (stop[a] != stop[b]) return stop[a] > stop[b];
            return a < b;
        };
        if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    }
    """
    void tbm_nest_order(vector[int32_t]& order, const int64_t* start, const int64_t* stop) nogil


def enclosing(const int64_t[::1] line_events, const int64_t[::1] start, const int64_t[::1] stop) -> I32:
    """Return, per event, the innermost event of its line that encloses it, -1 where none does.

    Events come line by line, `line_events` of each, as [start, stop) on one clock. An event of zero length encloses no
    event. It is inside an event that starts with it, but not inside one that stops with it.
    """
    cdef Py_ssize_t first = 0, line, i
    parent_array = np.full(start.shape[0], -1, dtype=np.int32)
    cdef int32_t[::1] parent = parent_array
    cdef vector[int32_t] order, stack
    cdef int32_t event
    with nogil:
        for line in range(line_events.shape[0]):
            if not line_events[line]:
                continue
            order.resize(line_events[line])
            stack.clear()
            for i in range(line_events[line]):
                order[i] = <int32_t>(first + i)
            tbm_nest_order(order, &start[0], &stop[0])
            for i in range(line_events[line]):
                event = order[i]
                while stack.size() and stop[stack.back()] <= start[event]:
                    stack.pop_back()
                if stack.size():
                    parent[event] = stack.back()
                if stop[event] > start[event]:
                    stack.push_back(event)
            first += line_events[line]
    return parent_array


cdef enum:
    UNKNOWN = -2


cdef struct Link:
    int32_t event
    bint own      # its ancestors do not depend on the event inside of it, so its node can be cached
    bint caused   # it or an ancestor on its line is a consumer


cdef class _Chains:
    cdef unordered_map[int32_t, int32_t, Hash] caused_by
    cdef vector[int32_t] known         # by event: its node, or UNKNOWN
    cdef vector[char] known_caused     # by event, whose node is known: as in Link
    cdef unordered_map[uint64_t, int32_t, Hash] below     # by node and name: the child of that name
    cdef vector[int32_t] node_parent, node_name
    cdef vector[Link] chain

    cdef int32_t node(self, const int32_t[::1] parent, const int32_t[::1] name, int32_t event) except -2 nogil:
        """Return the node of an event, -1 for none."""
        cdef int32_t node = -1
        cdef int64_t line = 0, cause = -1    # index in the chain of the line's start, and of its outermost consumer
        cdef uint64_t key
        cdef Link link
        self.chain.clear()
        # Links between threads may form a cycle in a damaged file, so the walk is bounded.
        while self.chain.size() < 4096:
            if event < 0 and cause < 0:
                break
            if event < 0:
                event = self.caused_by[self.chain[cause].event]
                self.settle(line, cause, True)
                line, cause = self.chain.size(), -1
            elif self.known[event] != UNKNOWN and (cause < 0 or self.known_caused[event]):
                node = self.known[event]
                self.settle(line, self.chain.size() - 1, self.known_caused[event])
                break
            else:
                link.event, link.own, link.caused = event, cause < 0, False
                self.chain.push_back(link)
                if self.caused_by.size() and self.caused_by.count(event):
                    cause = self.chain.size() - 1
                event = parent[event]
        while self.chain.size():
            link = self.chain.back()
            self.chain.pop_back()
            key = (<uint64_t>(node + 1) << 32) | <uint64_t>(name[link.event] + 1)
            if not self.below.count(key):
                put(self.below, key, <int32_t>self.node_parent.size())
                self.node_parent.push_back(node)
                self.node_name.push_back(name[link.event])
            node = self.below[key]
            if link.own:
                self.known[link.event] = node
                self.known_caused[link.event] = link.caused
        return node

    cdef void settle(self, int64_t first, int64_t last, bint caused) noexcept nogil:
        """Mark the events, up to `last`, of a line's complete part of the chain whose ancestors are all on it."""
        cdef int64_t i
        for i in range(first, <int64_t>self.chain.size()):
            self.chain[i].own = i <= last
            self.chain[i].caused = caused


def intern_chains(const int32_t[::1] parent, const int32_t[::1] name, const int32_t[::1] consumer,
                  const int32_t[::1] producer, const int64_t[::1] wanted) -> tuple[I32, I32, I32]:
    """Build one tree of the `wanted` events' ancestors; events with the same name and parent node share a node.

    Where a line's nesting ends, the outermost `consumer` in it continues with its `producer`, an event of another line.
    Returns per wanted event its innermost node (-1 without a parent), and per node its parent node and its name.
    """
    cdef Py_ssize_t i
    leaf_array = np.full(wanted.shape[0], -1, dtype=np.int32)
    cdef int32_t[::1] leaf = leaf_array
    cdef _Chains chains = _Chains()
    # A cell for each event takes less memory than a hash table of the visited events, and a tenth of the time.
    chains.known.assign(parent.shape[0], UNKNOWN)
    chains.known_caused.assign(parent.shape[0], 0)
    for i in range(consumer.shape[0]):
        put(chains.caused_by, <int32_t>consumer[i], <int32_t>producer[i])
    with nogil:
        for i in range(wanted.shape[0]):
            leaf[i] = chains.node(parent, name, parent[wanted[i]])
    return leaf_array, array_of[int32_t](chains.node_parent), array_of[int32_t](chains.node_name)
