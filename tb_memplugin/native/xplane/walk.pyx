"""Traversal of an XPlane's lines and events."""
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.containers cimport put

from tb_memplugin.native.protobuf.fields cimport Item, item

from tb_memplugin.native.charges import exceeded, left_of
from tb_memplugin.native.text.spans import Spans

cdef enum:
    LINE_BYTES = 200  # per line at most: growing columns, their copies, and the readers' columns


cdef class Numbers:
    """A map from ids to numbers. Writers count ids from 1, so an array without hashing serves small ids."""
    def __init__(self, known):
        small = 1 << 16
        self.small.resize(max((key for key in known if 0 <= key < small), default=-1) + 1, -1)
        for key, number in known.items():
            if 0 <= key < small:
                self.small[key] = number
            else:
                put(self.others, <int64_t>key, <int32_t>number)

    cdef int32_t other(self, int64_t key) noexcept nogil:
        """Return the number of an id that is not small, -1 where it is unknown."""
        if self.others.empty() or not self.others.count(key):
            return -1
        return self.others[key]


cdef class Walk:
    """Visits a plane's lines and events in file order."""
    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        """Handle an event; return BROKEN, GO_ON, ENOUGH, or FULL where nothing is left."""
        return ENOUGH

    cdef int walk(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef int step = GO_ON
        while step == GO_ON and p < end:
            if not item(&p, end, &field):
                return BROKEN
            if field.number == PLANE_LINES and field.at != NULL:
                step = self.one_line(field.at, field.at + field.value)
        return step

    cdef int one_line(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef int step = GO_ON
        self.line = <int>self.events.size()
        self.name_start.push_back(0)
        self.name_length.push_back(0)
        self.timestamp.push_back(0)
        self.events.push_back(0)
        self.left -= LINE_BYTES
        if self.left < 0:
            return FULL
        while step == GO_ON and p < end:
            if not item(&p, end, &field):
                return BROKEN
            if field.number == LINE_EVENTS and field.at != NULL:
                self.events[self.line] += 1
                step = self.event(field.at, field.at + field.value)
            elif field.number == LINE_NAME and field.at != NULL:
                self.name_start[self.line] = field.at - self.base
                self.name_length[self.line] = <int64_t>field.value
            elif field.number == LINE_TIMESTAMP_NS and field.at == NULL:
                self.timestamp[self.line] = <int64_t>field.value
        return step


cdef walked(Walk walk, plane, lines=None, budget=None):
    """Read the plane, or only the lines at these spans; return the columns of its lines.

    The columns are charged to `budget`, which raises its own error for too much.
    """
    cdef const unsigned char[::1] view = plane
    cdef const unsigned char* base = b""
    cdef int step = GO_ON
    cdef int64_t start, length, before
    if view.shape[0]:
        base = &view[0]
    walk.base = base
    walk.left = before = left_of(budget, len(view) if lines is None else lines.length.sum())
    if lines is None:
        with nogil:
            step = walk.walk(base, base + view.shape[0])
    else:
        for start, length in zip(lines.start.tolist(), lines.length.tolist()):
            if not 0 <= start <= start + length <= view.shape[0]:
                raise ValueError("a line lies outside of the plane")
            with nogil:
                step = walk.one_line(base + start, base + start + length)
            if step != GO_ON:
                break
    if step == FULL:
        raise exceeded(budget)
    if budget is not None:
        budget.charge(before - walk.left)
    if step == BROKEN:
        raise ValueError("an event of the plane is damaged")
    names = Spans(array_of[int64_t](walk.name_start), array_of[int64_t](walk.name_length))
    return {
        "line_name": names, "line_timestamp_ns": array_of[int64_t](walk.timestamp),
        "line_events": array_of[int64_t](walk.events),
    }
