"""Traversals of a program's data flow. A graph is CSR: node n has edges to to[begin[n]:begin[n + 1]]."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.pair cimport pair
from libcpp.queue cimport priority_queue
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.containers cimport push

cdef enum:
    FAR = 1 << 20      # exceeds any number of steps, so that paths are ordered by kind before steps
    VISITS = 1 << 24   # visits from all starts together; only a damaged file needs as many


def grouped(const int32_t[::1] key, Py_ssize_t groups) -> tuple[I64, I32]:
    """Return (begin, order): group g has the items order[begin[g]:begin[g + 1]], stable. Other keys are left out."""
    cdef Py_ssize_t n = key.shape[0], i
    begin_a = np.zeros(groups + 1, dtype=np.int64)
    cdef int64_t[::1] begin = begin_a
    with nogil:
        for i in range(n):
            if 0 <= key[i] < groups:
                begin[key[i] + 1] += 1
        for i in range(groups):
            begin[i + 1] += begin[i]
    order_a = np.empty(begin_a[groups], dtype=np.int32)
    cdef int32_t[::1] order = order_a
    with nogil:
        for i in range(n):
            if 0 <= key[i] < groups:
                order[begin[key[i]]] = <int32_t>i
                begin[key[i]] += 1
        for i in range(groups, 0, -1):  # each group's begin is now its end
            begin[i] = begin[i - 1]
        begin[0] = 0
    return begin_a, order_a


def reach(const int64_t[::1] begin, const int32_t[::1] to, const int32_t[::1] seeds) -> U8:
    """Return, per node, 1 where it is a seed or reachable from one."""
    cdef Py_ssize_t n = begin.shape[0] - 1, i
    cdef int64_t e
    cdef int32_t node
    seen_a = np.zeros(n, dtype=np.uint8)
    cdef uint8_t[::1] seen = seen_a
    cdef vector[int32_t] todo
    with nogil:
        for i in range(seeds.shape[0]):
            if not seen[seeds[i]]:
                seen[seeds[i]] = 1
                todo.push_back(seeds[i])
        while not todo.empty():
            node = todo.back()
            todo.pop_back()
            for e in range(begin[node], begin[node + 1]):
                if not seen[to[e]]:
                    seen[to[e]] = 1
                    todo.push_back(to[e])
    return seen_a


def spread_labels(uint64_t[::1] label, const int32_t[::1] source, const int32_t[::1] target, int passes) -> bool:
    """Propagate the bits of label[source[i]] to label[target[i]], edge by edge, until nothing changes.

    Edges in data-flow order need one pass, plus one per back edge. Returns False where `passes` did not suffice.
    """
    cdef Py_ssize_t i, n = source.shape[0]
    cdef int done
    cdef uint64_t changed = 1
    with nogil:
        for done in range(passes):
            changed = 0
            for i in range(n):
                changed |= label[source[i]] & ~label[target[i]]
                label[target[i]] |= label[source[i]]
            if not changed:
                break
    return changed == 0


def owners(int32_t[::1] owner, const int32_t[::1] source, const int32_t[::1] target, const uint8_t[::1] counts) -> None:
    """Propagate owner[source[i]] to owner[target[i]], edge by edge, while a node has one owner.

    owner[node] is -1 for none and -2 for several. Nodes with counts[node] = 0 propagate nothing.
    """
    cdef Py_ssize_t i
    cdef int32_t given
    with nogil:
        for i in range(source.shape[0]):
            given = owner[source[i]]
            if given == -1 or not counts[source[i]]:
                continue
            if owner[target[i]] == -1:
                owner[target[i]] = given
            elif owner[target[i]] != given:
                owner[target[i]] = -2


def nearest(const int64_t[::1] begin, const int32_t[::1] source, const int32_t[::1] steps, const uint8_t[::1] kind,
            const int32_t[::1] starts, const uint8_t[::1] ends, Py_ssize_t most) -> tuple[I32, I32, I32, U8]:
    """Find, from each start, the reachable nodes with `ends` set: (index of the start, node, steps, kind).

    Edge e of node n leads to source[e], costs steps[e], and raises the path's kind to at least kind[e]. Paths are
    ordered by kind, then by steps, and stop at an end. A start visits at most `most` nodes.
    """
    cdef Py_ssize_t n = begin.shape[0] - 1, s, visited, total = 0
    cdef int64_t e, cost, further
    cdef int32_t node
    cdef vector[int64_t] best
    cdef vector[int32_t] touched, out_start, out_node, out_steps
    cdef vector[uint8_t] out_kind
    cdef priority_queue[pair[int64_t, int32_t]] todo   # largest first, so costs go in negative
    best.resize(n, -1)
    with nogil:
        for s in range(starts.shape[0]):
            if starts[s] < 0:
                continue
            visited = 0
            best[starts[s]] = 0
            touched.push_back(starts[s])
            push(todo, pair[int64_t, int32_t](0, starts[s]))
            while not todo.empty():
                cost, node = -todo.top().first, todo.top().second
                todo.pop()
                if cost > best[node]:
                    continue
                visited += 1
                total += 1
                if visited > most or total > VISITS:
                    continue
                if ends[node]:
                    out_start.push_back(<int32_t>s)
                    out_node.push_back(node)
                    out_steps.push_back(<int32_t>(cost % FAR))
                    out_kind.push_back(<uint8_t>(cost // FAR))
                    continue
                for e in range(begin[node], begin[node + 1]):
                    further = (cost // FAR if cost // FAR > kind[e] else kind[e]) * FAR
                    further += min(<int64_t>FAR - 1, cost % FAR + steps[e])
                    if best[source[e]] < 0 or further < best[source[e]]:
                        if best[source[e]] < 0:
                            touched.push_back(source[e])
                        best[source[e]] = further
                        push(todo, pair[int64_t, int32_t](-further, source[e]))
            while not touched.empty():
                best[touched.back()] = -1
                touched.pop_back()
    return (
        array_of[int32_t](out_start), array_of[int32_t](out_node), array_of[int32_t](out_steps),
        array_of[uint8_t](out_kind),
    )


def derive(const int64_t[::1] first, const int64_t[::1] stop, const int32_t[::1] leaf, const int64_t[::1] begin,
           const int32_t[::1] operand, const uint8_t[::1] kind, const uint8_t[::1] weight,
           int64_t most) -> tuple[I32, I32, I32, U8]:
    """Find the instructions from which results are derived, element by element: (leaf, instruction, steps, kind).

    Leaf i is an instruction of the computation of instructions first[i] to stop[i], which follow their operands.
    Instruction n has the operands operand[begin[n]:begin[n + 1]]. `kind` is the derivation from each operand (255 for
    none), and weight[n] the steps of the instruction. Only instructions without operands are returned. At most `most`
    instructions are visited; leaves beyond that have no rows.
    """
    cdef Py_ssize_t i, n = 0
    cdef int64_t e, row, cost, further
    cdef vector[int64_t] best
    cdef vector[int32_t] out_leaf, out_node, out_steps
    cdef vector[uint8_t] out_kind
    for i in range(leaf.shape[0]):
        n = max(n, stop[i])
    best.resize(n, -1)
    with nogil:
        for i in range(leaf.shape[0]):
            most -= leaf[i] - first[i] + 1
            if leaf[i] < first[i] or leaf[i] >= stop[i] or most < 0:
                continue
            best[leaf[i]] = 0
            for row in range(leaf[i], first[i] - 1, -1):
                cost = best[row]
                if cost < 0:
                    continue
                best[row] = -1
                if begin[row] == begin[row + 1]:
                    out_leaf.push_back(<int32_t>i)
                    out_node.push_back(<int32_t>row)
                    out_steps.push_back(<int32_t>(cost % FAR))
                    out_kind.push_back(<uint8_t>(cost // FAR))
                for e in range(begin[row], begin[row + 1]):
                    if kind[e] == 255 or operand[e] < first[i] or operand[e] >= row:
                        continue
                    further = (cost // FAR if cost // FAR > kind[e] else kind[e]) * FAR
                    further += min(<int64_t>FAR - 1, cost % FAR + weight[row])
                    if best[operand[e]] < 0 or further < best[operand[e]]:
                        best[operand[e]] = further
    return (
        array_of[int32_t](out_leaf), array_of[int32_t](out_node), array_of[int32_t](out_steps),
        array_of[uint8_t](out_kind),
    )
