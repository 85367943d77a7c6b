"""Block sizes of PyTorch's caching allocator, whose trace contains only requested sizes."""
from cython.operator cimport dereference, predecrement
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.map cimport map
from libcpp.pair cimport pair
from libcpp.set cimport set
from libcpp.vector cimport vector

import numpy as np

NOTHING, ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP = range(7)

cdef enum:
    K_ALLOC = 1
    K_FREE = 2
    K_SEGMENT_ALLOC = 3
    K_SEGMENT_FREE = 4
    K_MAP = 5
    K_UNMAP = 6

# Constants of the allocator: the minimum block size, and the largest size of blocks in the small pool. The small pool
# splits off any remainder of a block, the large pool only remainders above 1 MiB.
cdef enum:
    LEAST = 512
    SMALL = 1048576

cdef struct Extent:
    uint64_t end
    bint expandable


cdef class _Memory:
    """Memory from the device, by address; adjacent mapped pieces are one range."""
    cdef map[uint64_t, Extent] held

    cdef int put(self, uint64_t start, Extent extent) except -1 nogil:
        cdef pair[uint64_t, Extent] entry
        found = self.held.find(start)
        if found != self.held.end():
            dereference(found).second = extent
        else:
            entry.first, entry.second = start, extent
            self.held.insert(entry)
        return 0

    cdef int add(self, uint64_t start, uint64_t size, bint expandable) except -1 nogil:
        cdef Extent extent
        extent.end, extent.expandable = start + size, expandable
        if expandable:
            after = self.held.find(extent.end)
            if after != self.held.end() and dereference(after).second.expandable:
                extent.end = dereference(after).second.end
                self.held.erase(after)
            before = self.held.lower_bound(start)
            if before != self.held.begin():
                predecrement(before)
                if dereference(before).second.end == start and dereference(before).second.expandable:
                    dereference(before).second.end = extent.end
                    return 0
        return self.put(start, extent)

    cdef int remove(self, uint64_t start, uint64_t size) except -1 nogil:
        cdef uint64_t end = start + size, from_
        cdef Extent extent
        found = self.held.upper_bound(start)
        if found == self.held.begin():
            return 0
        predecrement(found)
        extent, from_ = dereference(found).second, dereference(found).first
        if extent.end <= start:
            return 0
        self.held.erase(found)
        if extent.end > end:
            self.put(end, extent)
        if from_ < start:
            extent.end = start
            self.put(from_, extent)
        return 0

    cdef uint64_t end_of(self, uint64_t address, bint* expandable) noexcept nogil:
        """Return the end of the range around an address; 0 where there is none."""
        found = self.held.upper_bound(address)
        if found == self.held.begin():
            return 0
        predecrement(found)
        expandable[0] = dereference(found).second.expandable
        return dereference(found).second.end if dereference(found).second.end > address else 0


def block_sizes(const uint8_t[::1] kind, const int64_t[::1] address, const int64_t[::1] size, const int64_t[::1] live,
                const int64_t[::1] segment, const int64_t[::1] segment_size, const uint8_t[::1] expandable,
                int64_t max_split) -> tuple[I64, int]:
    """Return (block size in bytes of each ALLOC event, 0 for others; number of blocks that did not fit).

    `size` is rounded as the allocator does. `live`: addresses of blocks in use before the first event. `segment`,
    `segment_size`, `expandable`: the device's memory after the last event. A large block is split only if it is
    smaller than `max_split` bytes; a negative value is no limit, and 0 splits no block.
    """
    cdef Py_ssize_t n = kind.shape[0], i
    cdef _Memory memory = _Memory()
    cdef set[uint64_t] used
    cdef uint64_t start, room, end
    cdef bint grows = False
    cdef int64_t odd = 0
    found = np.zeros(n, dtype=np.int64)
    cdef int64_t[::1] block = found
    with nogil:
        for i in range(segment.shape[0]):
            memory.add(<uint64_t>segment[i], segment_size[i], expandable[i])
        for i in range(n - 1, -1, -1):    # undo events, back to the state before the first one
            if kind[i] == K_SEGMENT_ALLOC or kind[i] == K_MAP:
                memory.remove(<uint64_t>address[i], size[i])
            elif kind[i] == K_SEGMENT_FREE or kind[i] == K_UNMAP:
                memory.add(<uint64_t>address[i], size[i], kind[i] == K_UNMAP)
        for i in range(live.shape[0]):
            used.insert(<uint64_t>live[i])
        for i in range(n):
            start = <uint64_t>address[i]
            if kind[i] == K_ALLOC:
                block[i] = size[i]
                end = memory.end_of(start, &grows)
                above = used.upper_bound(start)
                if above != used.end() and dereference(above) < end:
                    end = dereference(above)
                used.insert(start)
                if end < start + <uint64_t>size[i]:
                    odd += end > 0
                    continue
                room = end - start
                if max_split == 0:
                    block[i] = room
                elif size[i] <= SMALL or grows:
                    if room - size[i] < LEAST:
                        block[i] = room
                elif room - size[i] <= SMALL or 0 <= max_split <= size[i]:
                    block[i] = room
            elif kind[i] == K_FREE:
                used.erase(start)
            elif kind[i] == K_SEGMENT_ALLOC or kind[i] == K_MAP:
                memory.add(start, size[i], kind[i] == K_MAP)
            elif kind[i] == K_SEGMENT_FREE or kind[i] == K_UNMAP:
                memory.remove(start, size[i])
    return found, odd


def free_requests(const uint8_t[::1] is_request, const int64_t[::1] place, const int64_t[::1] row_place,
                  const int64_t[::1] free_event) -> I64:
    """Return the last request at the address of each row up to its free; if that is -1, the last of all; -1 for none.

    `place` and `row_place`: small numbers for the addresses of events and of rows. Each free is of one row only.
    """
    cdef Py_ssize_t events = is_request.shape[0], rows = free_event.shape[0], i
    cdef int64_t row
    cdef vector[int64_t] freed, latest    # the row that an event frees; the last request at an address
    found = np.empty(rows, dtype=np.int64)
    cdef int64_t[::1] request = found
    if place.shape[0] != events or row_place.shape[0] != rows:
        raise ValueError("columns differ in length")
    with nogil:
        latest.resize(max(greatest(place), greatest(row_place)) + 1, -1)
        freed.resize(events, -1)
        for i in range(rows):
            if 0 <= free_event[i] < events:
                freed[free_event[i]] = i
        for i in range(events):
            if is_request[i] and place[i] >= 0:
                latest[place[i]] = i
            row = freed[i]
            if row >= 0:
                request[row] = latest[row_place[row]] if row_place[row] >= 0 else -1
        for i in range(rows):
            if not 0 <= free_event[i] < events:
                request[i] = latest[row_place[i]] if row_place[i] >= 0 else -1
    return found


cdef int64_t greatest(const int64_t[::1] values) noexcept nogil:
    cdef int64_t found = -1
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        found = max(found, values[i])
    return found
