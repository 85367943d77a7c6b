"""Call graph of a stack tree: own and cumulative weights of functions, and weights of calls."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of, pair_of, pairs_in
from tb_memplugin.native.hashing cimport Numbering

HIDDEN = -1   # the frame is removed from stacks: its caller calls its callees
DROPPED = -2  # the frame and its own weight are left out; a call across it is residual


def with_callers(const int32_t[::1] parent, marked: Bools) -> Bools:
    """Return a mask of the marked nodes and all their ancestors, in a tree in which parents precede children."""
    found = np.array(marked, dtype=np.uint8)
    cdef uint8_t[::1] mark = found
    cdef Py_ssize_t i
    with nogil:
        for i in range(parent.shape[0] - 1, -1, -1):
            if mark[i] and parent[i] >= 0:
                mark[parent[i]] = 1
    return found.view(bool)


def with_callees(const int32_t[::1] parent, marked: Bools) -> Bools:
    """Return a mask of the marked nodes and all their descendants, in a tree in which parents precede children."""
    found = np.array(marked, dtype=np.uint8)
    cdef uint8_t[::1] mark = found
    cdef Py_ssize_t i
    with nogil:
        for i in range(parent.shape[0]):
            if parent[i] >= 0 and mark[parent[i]]:
                mark[i] = 1
    return found.view(bool)


def weave(const int32_t[::1] parent, const int32_t[::1] entity, int entities, const int64_t[:, ::1] own,
          bint with_calls=True) -> tuple[I64, I64, I32, I32, I64, Bools]:
    """Return (flat, cum, caller, callee, weight per call, residual) of a tree in which parents precede children.

    `entity` is the function of each node, or HIDDEN, or DROPPED; `own` has a row of measures per node. `flat` and `cum`
    have a row per entity, and `weight per call` one per pair of caller and callee. A stack counts once per entity and
    call, however often they occur in it. Without `with_calls`, the columns of calls are empty.
    """
    cdef Py_ssize_t n = parent.shape[0], i, m, measures = own.shape[1]
    inclusive_array = np.array(own, dtype=np.int64, order="C")
    flat_array = np.zeros((entities, measures), dtype=np.int64)
    cum_array = np.zeros((entities, measures), dtype=np.int64)
    cdef int64_t[:, ::1] inclusive = inclusive_array, flat = flat_array, cum = cum_array
    cdef vector[int32_t] first_child, sibling, shown, active, call_active, call_of, path
    cdef vector[uint8_t] gap, residual
    cdef vector[int64_t] amounts
    cdef Numbering calls   # by caller and callee
    cdef int32_t node, e, above, call
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
            # Enter the node.
            e = entity[node]
            if e >= 0:
                if active[e] == 0:
                    for m in range(measures):
                        cum[e, m] += inclusive[node, m]
                active[e] += 1
                above = shown[parent[node]] if parent[node] >= 0 else -1
                if with_calls and above >= 0 and above != e:
                    call = <int32_t>calls.number(pair_of(above, e))
                    if call == <int32_t>call_active.size():  # a new call
                        call_active.push_back(0)
                        residual.push_back(0)
                        amounts.resize(amounts.size() + measures, 0)
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
            # Leave nodes without further children, and continue with the next sibling.
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
    caller, callee = pairs_in(calls.keys)
    weights = array_of[int64_t](amounts).reshape(len(caller), measures)
    return flat_array, cum_array, caller, callee, weights, array_of[uint8_t](residual).view(bool)
