"""Rows that occupy the same bytes of a region at the same time: each byte is charged to one row."""
from libc.stdint cimport int8_t, int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.map cimport map as ordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.containers cimport put, put_before
from cython.operator cimport dereference, preincrement, predecrement


cdef struct Owned:
    int64_t stop      # end, exclusive
    int32_t row


ctypedef ordered_map[int64_t, Owned] OwnedBytes  # by the first byte


def charge_once(const int64_t[::1] region, const int64_t[::1] offset, const int64_t[::1] start, int64_t[::1] end,
                int64_t[::1] last_used, int64_t[::1] charge) -> tuple[I32, I32]:
    """Charge each byte of a region to one row at a time, so that the charges sum to the union of the live rows' bytes.

    Rows must be sorted by (region, start). A row occupies `charge` bytes from its offset. Changes the columns in place:

    - A row inside an earlier one that lives as long (a loop's parameter in the loop's operand) has no charge.
    - A row that covers earlier ones (a tensor on its slices), or that overwrites a row that is no longer read (an
    in-place result), takes over their memory. If they lived longer, it lives as long.
    - A row that covers a part of a row that is still needed is charged for its other bytes only.

    Returns the pairs of rows that share bytes: (earlier, later).
    """
    cdef Py_ssize_t n = offset.shape[0], i, k
    cdef OwnedBytes owned
    cdef vector[int32_t] touched, earlier, later
    cdef vector[int64_t] inside  # per row: how many of its bytes the current row covers
    cdef int64_t covered, until
    cdef int32_t r
    cdef cbool outlived, all_covered
    inside.resize(n, 0)
    with nogil:
        for i in range(n):
            if i == 0 or region[i] != region[i - 1]:
                owned.clear()
            if charge[i] <= 0 or end[i] <= start[i]:
                continue
            if take_free(owned, offset[i], offset[i] + charge[i], <int32_t>i, start[i], end):
                continue
            touch(owned, offset[i], offset[i] + charge[i], start[i], end, touched, inside)
            covered, outlived, all_covered = 0, True, True
            for k in range(<Py_ssize_t>touched.size()):
                r = touched[k]
                earlier.push_back(r)
                later.push_back(<int32_t>i)
                covered += inside[r]
                outlived = outlived and end[r] >= end[i]
                all_covered = all_covered and inside[r] == charge[r]
            if covered == charge[i] and outlived and (touched.size() == 1 or not all_covered):
                charge[i] = 0
            until = end[i]
            for k in range(<Py_ssize_t>touched.size()):
                r = touched[k]
                if charge[i] and (inside[r] == charge[r] or last_used[r] <= start[i]):
                    if inside[r] == charge[r] and end[r] > until:
                        until = end[r]
                    if start[r] < start[i]:
                        end[r] = start[i]
                    else:
                        charge[r] = 0
                inside[r] = 0
            if charge[i]:
                if until > end[i]:
                    end[i], last_used[i] = until, until - 1
                charge[i] = own(owned, offset[i], offset[i] + charge[i], <int32_t>i, start[i], end, charge)
    return array_of[int32_t](earlier), array_of[int32_t](later)


cdef OwnedBytes.iterator first_entry(OwnedBytes& owned, int64_t offset) noexcept nogil:
    """Return the entry that contains `offset`, or the first one after it."""
    cdef OwnedBytes.iterator it = owned.upper_bound(offset)
    if it != owned.begin():
        predecrement(it)
        if dereference(it).second.stop <= offset:
            preincrement(it)
    return it


cdef int take_free(OwnedBytes& owned, int64_t offset, int64_t stop, int32_t row, int64_t now,
                   const int64_t[::1] end) except -1 nogil:
    """Make `row` own all bytes of [offset, stop) and return 1; return 0 in the rare case that a live row owns some."""
    cdef OwnedBytes.iterator first = first_entry(owned, offset)
    cdef OwnedBytes.iterator it = first
    cdef Owned entry
    while it != owned.end() and dereference(it).first < stop:
        if end[dereference(it).second.row] > now:
            return 0
        preincrement(it)
    it = first
    while it != owned.end() and dereference(it).first < stop:
        it = owned.erase(it)
    entry.stop = stop
    entry.row = row
    put_before(owned, it, offset, entry)
    return 1


cdef int touch(OwnedBytes& owned, int64_t offset, int64_t stop, int64_t now, const int64_t[::1] end,
               vector[int32_t]& touched, vector[int64_t]& inside) except -1 nogil:
    """List the live rows that own bytes of [offset, stop), and add the numbers of these bytes to `inside`."""
    cdef OwnedBytes.iterator it = first_entry(owned, offset)
    cdef int64_t first
    cdef Owned entry
    touched.clear()
    while it != owned.end() and dereference(it).first < stop:
        first = dereference(it).first
        entry = dereference(it).second
        preincrement(it)
        if end[entry.row] > now:
            if not inside[entry.row]:
                touched.push_back(entry.row)
            inside[entry.row] += min(entry.stop, stop) - max(first, offset)
    return 0


cdef int64_t own(OwnedBytes& owned, int64_t offset, int64_t stop, int32_t row, int64_t now, const int64_t[::1] end,
                 const int64_t[::1] charge) except -1 nogil:
    """Make `row` own the bytes of [offset, stop) that no other live row owns; return their number."""
    cdef OwnedBytes.iterator it = first_entry(owned, offset)
    cdef vector[int64_t] gone, begin, finish
    cdef int64_t first, free_from = offset, total = 0
    cdef Owned entry
    cdef size_t k
    while it != owned.end() and dereference(it).first < stop:
        first = dereference(it).first
        entry = dereference(it).second
        preincrement(it)
        if end[entry.row] <= now or charge[entry.row] == 0:
            gone.push_back(first)
            continue
        if first > free_from:
            begin.push_back(free_from)
            finish.push_back(first)
        free_from = entry.stop
    if free_from < stop:
        begin.push_back(free_from)
        finish.push_back(stop)
    for k in range(gone.size()):
        owned.erase(gone[k])
    for k in range(begin.size()):
        entry.stop = finish[k]
        entry.row = row
        put(owned, begin[k], entry)
        total += finish[k] - begin[k]
    return total


cdef struct Piece:
    int64_t stop
    int64_t holders


ctypedef ordered_map[int64_t, Piece] HeldBytes  # by the first byte


def union_over_time(const int64_t[::1] group, const int64_t[::1] offset, const int64_t[::1] size,
                    const int64_t[::1] lifetime, const int8_t[::1] begins) -> I64:
    """Return the change by each event, in bytes, of the union of its group's live intervals [offset, offset + size).

    Each event begins or ends one lifetime. Events are sorted by (group, time); the other columns are per lifetime.
    """
    cdef Py_ssize_t n = lifetime.shape[0], e
    change_a = np.zeros(n, dtype=np.int64)
    cdef int64_t[::1] change = change_a
    cdef HeldBytes held
    cdef int64_t i
    with nogil:
        for e in range(n):
            i = lifetime[e]
            if e == 0 or group[i] != group[lifetime[e - 1]]:
                held.clear()
            if size[i] > 0:
                split(held, offset[i])
                split(held, offset[i] + size[i])
                change[e] = hold(held, offset[i], offset[i] + size[i], 1 if begins[e] else -1)
    return change_a


cdef int split(HeldBytes& held, int64_t at) except -1 nogil:
    """Make a piece begin at `at`, if one contains it."""
    cdef HeldBytes.iterator it = held.upper_bound(at)
    cdef Piece right
    cdef int64_t left
    if it == held.begin():
        return 0
    predecrement(it)
    left, right = dereference(it).first, dereference(it).second
    if left < at and right.stop > at:
        put(held, at, right)
        held[left].stop = at
    return 0


cdef int64_t hold(HeldBytes& held, int64_t offset, int64_t stop, int64_t more) except? -1 nogil:
    """Add `more` holders to the bytes [offset, stop), and split pieces there; return the change of the held bytes."""
    cdef HeldBytes.iterator it = held.lower_bound(offset)
    cdef vector[int64_t] gone, begin, finish
    cdef int64_t at = offset, first, change = 0
    cdef Piece piece
    cdef size_t k
    while it != held.end() and dereference(it).first < stop:
        first = dereference(it).first
        preincrement(it)
        if first > at:
            begin.push_back(at)
            finish.push_back(first)
        at = held[first].stop
        held[first].holders += more
        if held[first].holders == 0:
            change -= at - first
            gone.push_back(first)
    if at < stop:
        begin.push_back(at)
        finish.push_back(stop)
    for k in range(gone.size()):
        held.erase(gone[k])
    for k in range(begin.size()):
        piece.stop = finish[k]
        piece.holders = more
        put(held, begin[k], piece)
        change += finish[k] - begin[k]
    return change
