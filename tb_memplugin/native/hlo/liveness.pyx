"""Buffer lifetimes: propagation of values and uses, heap simulator traces, and buffers that share bytes."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libcpp.map cimport map as ordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.containers cimport put
from cython.operator cimport dereference, preincrement, predecrement


def edges(const int64_t[::1] order, const int64_t[::1] begin, const int32_t[::1] operand,
          const int32_t[::1] position) -> tuple[I32, I32]:
    """Return (user position, operand position) of each operand that has a position.

    `order`: the row of each position. Row r has the operands operand[begin[r]:begin[r + 1]], rows or -1.
    """
    cdef Py_ssize_t n = order.shape[0], i
    cdef int64_t e, found = 0, most = 0
    cdef int32_t row
    with nogil:
        for i in range(n):
            most += begin[order[i] + 1] - begin[order[i]]
    user_array, operand_array = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    cdef int32_t[::1] users = user_array, operands = operand_array
    with nogil:
        for i in range(n):
            for e in range(begin[order[i]], begin[order[i] + 1]):
                row = operand[e]
                if row >= 0 and position[row] >= 0:
                    users[found] = <int32_t>i
                    operands[found] = position[row]
                    found += 1
    return user_array[:found], operand_array[:found]


def flow_values(int32_t[::1] value, const int32_t[::1] dst, const int32_t[::1] src, const int32_t[::1] count) -> None:
    """Propagate values through instructions that only forward them, in schedule order.

    value[node] is the row defined there or -1. Flow i forwards `count` nodes from src to dst; flows are sorted by dst.
    Afterwards value[node] is the row whose memory the node refers to.
    """
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(dst.shape[0]):
            for k in range(count[i]):
                if value[dst[i] + k] < 0:
                    value[dst[i] + k] = value[src[i] + k]


def flow_uses(int32_t[::1] last, const int32_t[::1] dst, const int32_t[::1] src, const int32_t[::1] count,
              const uint8_t[::1] defines, const int32_t[::1] position) -> None:
    """Propagate last uses backwards: an instruction that forwards a value uses it as long as its result is used.

    last[node] is the last position that reads the node. A node that defines a value of its own (a loop's carry) reads
    its source at its own position and ends it.
    """
    cdef Py_ssize_t i, k
    cdef int32_t until, to, fro
    with nogil:
        for i in range(dst.shape[0] - 1, -1, -1):
            for k in range(count[i]):
                to = dst[i] + <int32_t>k
                fro = src[i] + <int32_t>k
                until = position[to] if defines[to] else last[to]
                if until > last[fro]:
                    last[fro] = until


def use_ranges(int32_t[::1] last, const int32_t[::1] node, const int32_t[::1] count,
               const int32_t[::1] position) -> None:
    """Set last[n] = max(last[n], position[i]) for each of the count[i] nodes from node[i]."""
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(node.shape[0]):
            for k in range(count[i]):
                if position[i] > last[node[i] + k]:
                    last[node[i] + k] = position[i]


cdef enum EventKind:
    ALLOC = 0
    FREE = 1
    SHARE_WITH = 2


def replay(const int32_t[::1] trace, const int8_t[::1] kind, const int32_t[::1] row, const int32_t[::1] shared,
           const int64_t[::1] size, const int64_t[::1] defined, const int64_t[::1] last_used,
           int64_t length) -> tuple[I64, I64, I64, I64, I32, U8, int, int]:
    """Replay heap simulator traces on the schedule.

    Per event: its trace, kind, row, and the row it shares memory with (-1 unknown). Per row: size, the position that
    defines it, the last that reads it. `length` is the schedule's. Returns per row (start and end of its memory, end of
    its own use, charge, canonical row, traced), then (peak of the running sum over all events, inconsistent events).

    An event takes place at the position that defines its buffer, and positions never decrease. A FREE has no position,
    so the last use is clamped to the window between the neighboring events.
    """
    cdef Py_ssize_t n = row.shape[0], m = size.shape[0], e
    start_a = np.full(m, -1, dtype=np.int64)
    end_a = np.full(m, -1, dtype=np.int64)
    own_a = np.full(m, -1, dtype=np.int64)
    charge_a = np.zeros(m, dtype=np.int64)
    canonical_a = np.arange(m, dtype=np.int32)
    traced_a = np.zeros(m, dtype=np.uint8)
    cdef int64_t[::1] start = start_a, end = end_a, own = own_a, charge = charge_a
    cdef int32_t[::1] canonical = canonical_a
    cdef uint8_t[::1] traced = traced_a
    cdef vector[int64_t] at, until
    cdef vector[int32_t] references, holder
    cdef int64_t here = 0, close, live = 0, peak = 0, odd = 0
    cdef int32_t b, root
    at.resize(n)
    until.resize(n)
    references.resize(m, 0)
    holder.resize(m, -1)
    with nogil:
        for e in range(n):
            if e == 0 or trace[e] != trace[e - 1]:
                here = 0
            if kind[e] != FREE and row[e] >= 0 and defined[row[e]] > here:
                here = defined[row[e]]
            at[e] = here
        for e in range(n - 1, -1, -1):
            if e == n - 1 or trace[e] != trace[e + 1]:
                until[e] = length
            elif kind[e + 1] == FREE:
                until[e] = until[e + 1]
            else:
                until[e] = at[e + 1]
        for e in range(n):
            b = row[e]
            if b < 0:
                odd += 1
                continue
            if kind[e] == ALLOC:
                if references[canonical[b]] > 0:
                    odd += 1
                    continue
                canonical[b] = b
                references[b] = 1
                holder[b] = b
                traced[b] = 1
                start[b] = at[e]
                end[b] = own[b] = length
                charge[b] = size[b]
                live += size[b]
            elif kind[e] == SHARE_WITH:
                if shared[e] < 0 or not traced[shared[e]] or shared[e] == b:
                    odd += 1
                    continue
                root = canonical[shared[e]]
                canonical[b] = root
                references[root] += 1
                traced[b] = 1
                start[b] = at[e]
                end[b] = own[b] = length
                if references[root] == 1:
                    holder[root] = b
                    charge[b] = size[root]
                    live += size[root]
            elif kind[e] == FREE:
                root = canonical[b]
                if not traced[b] or references[root] == 0:
                    odd += 1
                    continue
                close = last_used[b] + 1
                if close < at[e] + 1:
                    close = at[e] + 1
                if close > until[e]:
                    close = until[e]
                own[b] = close
                if b != holder[root]:
                    end[b] = close
                references[root] -= 1
                if references[root] == 0:
                    end[holder[root]] = close
                    live -= size[root]
            else:
                odd += 1
            if live > peak:
                peak = live
    return start_a, end_a, own_a, charge_a, canonical_a, traced_a, int(peak), int(odd)


cdef struct Held:
    int64_t stop      # end, exclusive
    int32_t row


def hand_over(const int64_t[::1] region, const int64_t[::1] offset, const int64_t[::1] size, const int64_t[::1] start,
              int64_t[::1] end, const int64_t[::1] last_used, int32_t[::1] canonical) -> int:
    """Resolve rows that occupy the same bytes of a region at the same time: the later row takes the bytes over.

    Rows must be sorted by (region, start). Changes `end` and `canonical` in place. Returns how many rows were
    overwritten before their last read, which is 0 when all aliases of the program are understood.
    """
    cdef ordered_map[int64_t, Held] active
    cdef ordered_map[int64_t, Held].iterator it
    cdef Held held
    cdef vector[int64_t] gone
    cdef Py_ssize_t n = size.shape[0], i, k
    cdef int64_t conflicts = 0, first
    cdef int32_t r
    with nogil:
        for i in range(n):
            if i == 0 or region[i] != region[i - 1]:
                active.clear()
            if size[i] <= 0 or end[i] <= start[i]:
                continue
            gone.clear()
            it = active.upper_bound(offset[i])
            if it != active.begin():
                predecrement(it)
            while it != active.end() and dereference(it).first < offset[i] + size[i]:
                first = dereference(it).first
                held = dereference(it).second
                r = held.row
                if held.stop > offset[i]:
                    gone.push_back(first)
                    if end[r] > start[i]:
                        if canonical[r] != canonical[i] and last_used[r] > start[i]:
                            conflicts += 1
                        if canonical[r] == canonical[i] and end[r] > end[i]:
                            end[i] = end[r]
                        end[r] = start[i]
                        canonical[i] = canonical[r]
                preincrement(it)
            for k in range(<Py_ssize_t>gone.size()):
                active.erase(gone[k])
            held.stop = offset[i] + size[i]
            held.row = <int32_t>i
            put(active, <int64_t>offset[i], held)
    return int(conflicts)
