# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""What encloses an event: host events nest within their thread, and that nesting is a call stack."""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

cdef extern from *:
    """
    #include <algorithm>
    #include <cstdint>
    #include <vector>
    // Enclosing before enclosed: by start, the longer first, then as the file has them, which mostly is the order.
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


def enclosing(const int64_t[::1] line_events, const int64_t[::1] start, const int64_t[::1] stop):
    """Per event the innermost event of its line that encloses it, -1 where none does.

    Events come line by line, so many of each; [start, stop) on one clock. An instant encloses nothing, and lies in an
    event that starts with it, but not in one that stops with it.
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


def intern_chains(const int32_t[::1] parent, const int32_t[::1] name, const int64_t[::1] wanted):
    """One tree of the chains of the `wanted` events' parents: events of one name in one place are one node.

    Returns per wanted event its innermost node (-1 without a parent), and per node its parent node and its name.
    """
    cdef Py_ssize_t i
    leaf_array = np.full(wanted.shape[0], -1, dtype=np.int32)
    cdef int32_t[::1] leaf = leaf_array
    cdef unordered_map[int32_t, int32_t] node_of
    cdef unordered_map[uint64_t, int32_t] below
    cdef vector[int32_t] node_parent, chain
    cdef vector[int32_t] node_name
    cdef int32_t event, node
    cdef uint64_t key
    with nogil:
        for i in range(wanted.shape[0]):
            chain.clear()
            event = parent[wanted[i]]
            # A link between threads may run in a circle in a broken file: the walk is bounded.
            while event >= 0 and not node_of.count(event) and chain.size() < 4096:
                chain.push_back(event)
                event = parent[event]
            node = node_of[event] if event >= 0 and node_of.count(event) else -1
            while chain.size():
                event = chain.back()
                chain.pop_back()
                key = (<uint64_t>(node + 1) << 32) | <uint64_t>(name[event] + 1)
                if not below.count(key):
                    below[key] = <int32_t>node_parent.size()
                    node_parent.push_back(node)
                    node_name.push_back(name[event])
                node = below[key]
                node_of[event] = node
            leaf[i] = node
    parents = np.empty(node_parent.size(), dtype=np.int32)
    names = np.empty(node_parent.size(), dtype=np.int32)
    cdef int32_t[::1] parents_view = parents
    cdef int32_t[::1] names_view = names
    for i in range(<Py_ssize_t>node_parent.size()):
        parents_view[i] = node_parent[i]
        names_view[i] = node_name[i]
    return leaf_array, parents, names
