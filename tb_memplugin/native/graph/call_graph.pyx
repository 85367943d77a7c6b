# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""A tree of stacks as a call graph: what each function holds itself, with its callees, and through which calls."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

HIDDEN = -1   # as if the frame were not in the stack: its caller calls its callees
DROPPED = -2  # left out of the picture: its own weight with it, and a call across it is residual


def weave(const int32_t[::1] parent, const int32_t[::1] entity, int entities, const int64_t[:, ::1] own):
    """(flat, cum, caller, callee, of each call, residual) of a tree in which parents come before their children.

    `entity` is what each node is a frame of, or HIDDEN, or DROPPED; `own` has a row of measures for each node. `flat`
    and `cum` have one for each entity, `of each call` for each pair of caller and callee. However often an entity or a
    call stands in one stack, the stack counts once.
    """
    cdef Py_ssize_t n = parent.shape[0], i, m, measures = own.shape[1]
    inclusive_array = np.array(own, dtype=np.int64, order="C")
    flat_array = np.zeros((entities, measures), dtype=np.int64)
    cum_array = np.zeros((entities, measures), dtype=np.int64)
    cdef int64_t[:, ::1] inclusive = inclusive_array, flat = flat_array, cum = cum_array
    cdef vector[int32_t] first_child, sibling, shown, active, call_active, callers, callees, call_of, path
    cdef vector[int8_t] gap, residual
    cdef vector[int64_t] amounts
    cdef unordered_map[uint64_t, int32_t] calls
    cdef int32_t node, e, above, call
    cdef uint64_t key
    first_child.resize(n + 1, -1)
    sibling.resize(n, -1)
    shown.resize(n, -1)
    gap.resize(n, 0)
    call_of.resize(n, -1)
    active.resize(entities, 0)
    with nogil:
        for i in range(n - 1, -1, -1):
            node = parent[i] if parent[i] >= 0 else <int32_t>n
            sibling[i] = first_child[node]
            first_child[node] = <int32_t>i
            if parent[i] >= 0:
                for m in range(measures):
                    inclusive[parent[i], m] += inclusive[i, m]
        for i in range(n):
            e = entity[i]
            if e >= 0:
                shown[i] = e
            elif parent[i] >= 0:
                shown[i] = shown[parent[i]]
                gap[i] = gap[parent[i]]
            if e == -2:
                gap[i] = 1
            if shown[i] >= 0 and not gap[i]:
                for m in range(measures):
                    flat[shown[i], m] += own[i, m]
        node = first_child[n]
        while node >= 0:
            # Down: into the node.
            e = entity[node]
            if e >= 0:
                if active[e] == 0:
                    for m in range(measures):
                        cum[e, m] += inclusive[node, m]
                active[e] += 1
                above = shown[parent[node]] if parent[node] >= 0 else -1
                if above >= 0 and above != e:
                    key = (<uint64_t>above << 32) | <uint64_t>e
                    if not calls.count(key):
                        calls[key] = <int32_t>callers.size()
                        callers.push_back(above)
                        callees.push_back(e)
                        call_active.push_back(0)
                        residual.push_back(0)
                        amounts.resize(amounts.size() + measures, 0)
                    call = calls[key]
                    call_of[node] = call
                    if call_active[call] == 0:
                        for m in range(measures):
                            amounts[call * measures + m] += inclusive[node, m]
                        if gap[parent[node]]:
                            residual[call] = 1
                    call_active[call] += 1
            path.push_back(node)
            if first_child[node] >= 0:
                node = first_child[node]
                continue
            # Up: out of what has no more children, to the next one beside it.
            while path.size():
                node = path.back()
                path.pop_back()
                if entity[node] >= 0:
                    active[entity[node]] -= 1
                if call_of[node] >= 0:
                    call_active[call_of[node]] -= 1
                node = sibling[node]
                if node >= 0:
                    break
            else:
                node = -1
    found = np.empty((callers.size(), measures), dtype=np.int64)
    pairs = np.empty((3, callers.size()), dtype=np.int32)
    cdef int64_t[:, ::1] found_view = found
    cdef int32_t[:, ::1] pairs_view = pairs
    for i in range(<Py_ssize_t>callers.size()):
        pairs_view[0, i], pairs_view[1, i], pairs_view[2, i] = callers[i], callees[i], residual[i]
        for m in range(measures):
            found_view[i, m] = amounts[i * measures + m]
    return flat_array, cum_array, pairs[0], pairs[1], found, pairs[2].astype(bool)
