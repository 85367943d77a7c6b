"""Traversal of an XPlane's lines and events, shared by the loops that read them."""
from libc.stdint cimport int32_t, int64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from tb_memplugin.native.hashing cimport Hash
from tb_memplugin.native.protobuf.fields cimport Item, item

# XPlane, XLine, XEvent and XStat, by field number.
cdef enum:
    PLANE_LINES = 3
    LINE_NAME = 2
    LINE_TIMESTAMP_NS = 3
    LINE_EVENTS = 4
    EVENT_METADATA = 1
    EVENT_OFFSET_PS = 2
    EVENT_DURATION_PS = 3
    EVENT_STATS = 4
    STAT_METADATA = 1
    STAT_DOUBLE = 2
    STAT_REFERENCE = 7

cdef enum Form:
    IS_ABSENT
    IS_NUMBER
    IS_DOUBLE
    IS_TEXT
    IS_REFERENCE

cdef enum Step:
    BROKEN
    GO_ON
    ENOUGH
    FULL

cdef struct Stat:
    int64_t metadata
    int64_t value                 # its 64 bits; for a text, its length
    const unsigned char* at       # of a text
    Form form


cdef inline bint read_stat(const unsigned char* p, const unsigned char* end, Stat* stat) noexcept nogil:
    cdef Item field
    stat.metadata = 0
    stat.form = IS_ABSENT
    while p < end:
        if not item(&p, end, &field):
            return False
        if field.number == STAT_METADATA and field.at == NULL:
            stat.metadata = <int64_t>field.value
            continue
        stat.value = <int64_t>field.value
        stat.at = field.at
        if field.at != NULL:
            stat.form = IS_TEXT
        elif field.number == STAT_DOUBLE:
            stat.form = IS_DOUBLE
        else:
            stat.form = IS_REFERENCE if field.number == STAT_REFERENCE else IS_NUMBER
    return True


cdef class Numbers:
    cdef vector[int32_t] small
    cdef unordered_map[int64_t, int32_t, Hash] others

    cdef int32_t other(self, int64_t key) noexcept nogil


cdef inline int32_t number_of(Numbers numbers, int64_t key) noexcept nogil:
    """Return the number of an id, -1 where it is unknown."""
    if 0 <= key < <int64_t>numbers.small.size():
        return numbers.small[key]
    return numbers.other(key)


cdef class Walk:
    cdef const unsigned char* base
    cdef int line
    cdef int64_t left    # bytes that further lines and events may take
    cdef vector[int64_t] name_start, name_length, timestamp, events    # of each line

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil
    cdef int walk(self, const unsigned char* p, const unsigned char* end) except -1 nogil
    cdef int one_line(self, const unsigned char* p, const unsigned char* end) except -1 nogil


cdef walked(Walk walk, plane, lines=*, budget=*)
