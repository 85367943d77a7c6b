"""Orders of a graph's nodes. A graph is CSR: node n has edges to to[begin[n]:begin[n + 1]]."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.pair cimport pair
from libcpp.queue cimport priority_queue

import numpy as np

from tb_memplugin.native.containers cimport push

cdef double STEP = 1e-4  # distance of a moved node from its new neighbor; positions are 1 apart
cdef double LEAST = 1e-7  # distance of a node that must give way to another moved node


def sorted_by(const double[::1] priority, const int64_t[::1] begin, const int32_t[::1] to) -> I32:
    """Return the nodes by priority, but each after all nodes with an edge to it. Nodes of cycles are missing."""
    cdef Py_ssize_t n = priority.shape[0], i, found = 0
    cdef int64_t e
    cdef int32_t node
    order_a, waits_a = np.empty(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    cdef int32_t[::1] order = order_a, waits = waits_a
    cdef priority_queue[pair[double, int32_t]] ready  # the largest is on top, so both are negated
    with nogil:
        for i in range(to.shape[0]):
            waits[to[i]] += 1
        for i in range(n):
            if not waits[i]:
                push(ready, pair[double, int32_t](-priority[i], <int32_t>-i))
        while not ready.empty():
            node = -ready.top().second
            ready.pop()
            order[found] = node
            found += 1
            for e in range(begin[node], begin[node + 1]):
                waits[to[e]] -= 1
                if not waits[to[e]]:
                    push(ready, pair[double, int32_t](-priority[to[e]], -to[e]))
    return order_a[:found]


def accesses(const int64_t[::1] step, const int32_t[::1] buffer, const int32_t[::1] node,
             Py_ssize_t buffers) -> tuple[I64, I64]:
    """Return the first and the last step at which each buffer is accessed; without an access, the step count and -1.

    In access i, node[i] accesses buffer[i], at step[node[i]].
    """
    cdef Py_ssize_t i
    cdef int64_t at
    first_a, last_a = np.full(buffers, step.shape[0], dtype=np.int64), np.full(buffers, -1, dtype=np.int64)
    cdef int64_t[::1] first = first_a, last = last_a
    with nogil:
        for i in range(buffer.shape[0]):
            at = step[node[i]]
            if at < first[buffer[i]]:
                first[buffer[i]] = at
            if at > last[buffer[i]]:
                last[buffer[i]] = at
    return first_a, last_a


def worth_advancing(const int32_t[::1] order, const int64_t[::1] begin, const int32_t[::1] to,
                    const int64_t[::1] effect) -> U8:
    """Mark the nodes that free memory, alone or together with the only nodes that read their results.

    `effect` is the number of bytes by which each node changes the live bytes. A node that changes nothing is marked if
    a marked node needs it.
    """
    cdef Py_ssize_t n = order.shape[0], i
    cdef int64_t e
    cdef int32_t node, only
    cdef uint8_t needed
    total_a, marked_a = np.array(effect, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    cdef int64_t[::1] total = total_a
    cdef uint8_t[::1] marked = marked_a
    with nogil:
        for i in range(n - 1, -1, -1):
            node = order[i]
            only = -1
            needed = 0
            for e in range(begin[node], begin[node + 1]):
                only = to[e] if only in (-1, to[e]) else -2
                needed |= marked[to[e]]
            if only >= 0 and total[only] < 0:
                total[node] += total[only]
            marked[node] = total[node] < 0 or (needed and effect[node] <= 0)
    return marked_a


def advance(const int32_t[::1] order, const int64_t[::1] begin, const int32_t[::1] needs,
            const uint8_t[::1] marked) -> F64:
    """Return each node's place if each marked node comes right after the last node that it needs."""
    cdef Py_ssize_t n = order.shape[0], i
    cdef int64_t e
    cdef int32_t node
    cdef double after
    place_a = np.empty(n, dtype=np.float64)
    cdef double[::1] place = place_a
    with nogil:
        for i in range(n):
            node = order[i]
            after = -1.0
            for e in range(begin[node], begin[node + 1]):
                if place[needs[e]] > after:
                    after = place[needs[e]]
            if after < 0:
                place[node] = i
            elif marked[node]:
                place[node] = after + STEP
            else:
                place[node] = after + LEAST if after + LEAST > i else i
    return place_a


def delay(const int32_t[::1] order, const int64_t[::1] begin, const int32_t[::1] to, const uint8_t[::1] marked) -> F64:
    """Return each node's place if each marked node comes right before the first node that needs it."""
    cdef Py_ssize_t n = order.shape[0], i
    cdef int64_t e
    cdef int32_t node
    cdef double before
    place_a = np.empty(n, dtype=np.float64)
    cdef double[::1] place = place_a
    with nogil:
        for i in range(n - 1, -1, -1):
            node = order[i]
            before = n + 1.0
            for e in range(begin[node], begin[node + 1]):
                if place[to[e]] < before:
                    before = place[to[e]]
            if before > n:
                place[node] = i
            elif marked[node]:
                place[node] = before - STEP
            else:
                place[node] = before - LEAST if before - LEAST < i else i
    return place_a
