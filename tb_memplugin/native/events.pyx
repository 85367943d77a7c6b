# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""The events of a plane: those of a few names with their stats, and what encloses them."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.spans import Spans

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
    STAT_STRING = 5
    STAT_BYTES = 6
    STAT_REFERENCE = 7

# How a stat's value is to be read; the numbers are part of this module's answer.
ABSENT, NUMBER, DOUBLE, TEXT, REFERENCE = range(5)

cdef struct Item:
    uint64_t number
    uint64_t value                # of a number; the length of what `at` points to otherwise
    const unsigned char* at       # NULL for a number


cdef inline bint varint(const unsigned char** cursor, const unsigned char* end, uint64_t* value) noexcept nogil:
    cdef const unsigned char* p = cursor[0]
    cdef uint64_t result = 0
    cdef int shift = 0
    while p < end and shift < 64:
        result |= <uint64_t>(p[0] & 0x7F) << shift
        if not p[0] & 0x80:
            value[0] = result
            cursor[0] = p + 1
            return True
        p += 1
        shift += 7
    return False


cdef inline bint item(const unsigned char** cursor, const unsigned char* end, Item* found) noexcept nogil:
    """The next field of a message, whatever it is; False where the bytes are no field."""
    cdef uint64_t tag = 0
    if not varint(cursor, end, &tag):
        return False
    found.number = tag >> 3
    found.at = NULL
    tag &= 7
    if tag == 0:
        return varint(cursor, end, &found.value)
    if tag == 2:
        if not varint(cursor, end, &found.value) or found.value > <uint64_t>(end - cursor[0]):
            return False
        found.at = cursor[0]
        cursor[0] += found.value
        return True
    if tag == 1 or tag == 5:
        if end - cursor[0] < (8 if tag == 1 else 4):
            return False
        found.value = 0
        memcpy(&found.value, cursor[0], 8 if tag == 1 else 4)
        cursor[0] += 8 if tag == 1 else 4
        return True
    return False


cdef class _Lines:
    """Walks a plane line by line; the answer's columns for the lines."""
    cdef const unsigned char* base
    cdef vector[int64_t] name_start, name_length, timestamp, start, stop    # start and stop count from base

    cdef bint read(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        """Locates the lines; their timestamp may stand behind their events. False where the bytes are no plane."""
        cdef Item field, inner
        cdef const unsigned char* q
        cdef const unsigned char* stop
        cdef size_t n
        while p < end:
            if not item(&p, end, &field):
                return False
            if field.number != PLANE_LINES or field.at == NULL:
                continue
            n = self.start.size()
            self.start.push_back(field.at - self.base)
            self.stop.push_back(field.at - self.base + <int64_t>field.value)
            self.name_start.push_back(0)
            self.name_length.push_back(0)
            self.timestamp.push_back(0)
            q = field.at
            stop = field.at + field.value
            while q < stop:
                if not item(&q, stop, &inner):
                    return False
                if inner.number == LINE_NAME and inner.at != NULL:
                    self.name_start[n] = inner.at - self.base
                    self.name_length[n] = <int64_t>inner.value
                elif inner.number == LINE_TIMESTAMP_NS and inner.at == NULL:
                    self.timestamp[n] = <int64_t>inner.value
        return True


def collect(plane, kinds, columns):
    """Events whose metadata id is in `kinds`, with the stats whose metadata id is in `columns`.

    `kinds`: {event metadata id: kind}; `columns`: {stat metadata id: column 0..k-1}; several ids may share one. Per
    event in file order: line, offset and duration in ps, kind, and for each column how its value is to be read, the
    value (of a TEXT its start in `plane`), and the length of a TEXT. Per line: its name and timestamp in ns.
    Raises ValueError where the bytes are no plane.
    """
    cdef const unsigned char[::1] view = plane
    cdef unordered_map[int64_t, int] kind_of, column_of
    for key, kind in kinds.items():
        kind_of[key] = kind
    for key, column in columns.items():
        column_of[key] = column
    cdef int width = max(columns.values(), default=-1) + 1
    cdef _Lines lines = _Lines()
    cdef const unsigned char* base = b""
    if view.shape[0]:
        base = &view[0]
    lines.base = base
    cdef vector[int64_t] head, values
    cdef vector[int32_t] lengths
    cdef vector[uint8_t] forms
    cdef bint good = True
    cdef size_t i
    with nogil:
        good = lines.read(base, base + view.shape[0])
        if good:
            for i in range(lines.start.size()):
                good = _line(base + lines.start[i], base + lines.stop[i], <int>i, base, kind_of, column_of, width,
                             head, values, lengths, forms)
                if not good:
                    break
    if not good:
        raise ValueError("an event of the plane is damaged")
    table = _int64(head).reshape(-1, 4)
    names = Spans(_int64(lines.name_start), _int64(lines.name_length))
    shape = (len(table), width)
    return {
        "line": table[:, 0].copy(), "offset_ps": table[:, 1].copy(), "duration_ps": table[:, 2].copy(),
        "kind": table[:, 3].copy(), "form": _uint8(forms).reshape(shape), "value": _int64(values).reshape(shape),
        "length": _int32(lengths).reshape(shape), "line_name": names, "line_timestamp_ns": _int64(lines.timestamp),
    }


cdef bint _line(const unsigned char* p, const unsigned char* end, int line, const unsigned char* base,
                unordered_map[int64_t, int]& kind_of, unordered_map[int64_t, int]& column_of, int width,
                vector[int64_t]& head, vector[int64_t]& values, vector[int32_t]& lengths,
                vector[uint8_t]& forms) except -1 nogil:
    cdef Item field, inner
    cdef const unsigned char* q
    cdef const unsigned char* stop
    cdef int64_t metadata, offset, duration
    cdef size_t at
    while p < end:
        if not item(&p, end, &field):
            return False
        if field.number != LINE_EVENTS or field.at == NULL:
            continue
        q = field.at
        stop = field.at + field.value
        metadata = offset = duration = 0
        # The metadata id comes first, and most events are not ours: they cost one field.
        while q < stop:
            if not item(&q, stop, &inner):
                return False
            if inner.number == EVENT_METADATA and inner.at == NULL:
                metadata = <int64_t>inner.value
                break
        if not kind_of.count(metadata):
            continue
        at = values.size()
        values.resize(at + width)
        lengths.resize(at + width)
        forms.resize(at + width)
        q = field.at
        while q < stop:
            if not item(&q, stop, &inner):
                return False
            if inner.number == EVENT_OFFSET_PS:
                offset = <int64_t>inner.value
            elif inner.number == EVENT_DURATION_PS:
                duration = <int64_t>inner.value
            elif inner.number == EVENT_STATS and inner.at != NULL:
                if not _stat(inner.at, inner.at + inner.value, base, column_of, at, values, lengths, forms):
                    return False
        head.push_back(line)
        head.push_back(offset)
        head.push_back(duration)
        head.push_back(kind_of[metadata])
    return True


cdef bint _stat(const unsigned char* p, const unsigned char* end, const unsigned char* base,
                unordered_map[int64_t, int]& column_of, size_t at, vector[int64_t]& values,
                vector[int32_t]& lengths, vector[uint8_t]& forms) except -1 nogil:
    cdef Item field, value
    cdef int64_t metadata = 0
    value.number = 0
    while p < end:
        if not item(&p, end, &field):
            return False
        if field.number == STAT_METADATA and field.at == NULL:
            metadata = <int64_t>field.value
        else:
            value = field
    found = column_of.find(metadata)
    if found == column_of.end() or value.number == 0:
        return True
    at += column_of[metadata]
    values[at] = <int64_t>value.value
    if value.number == STAT_DOUBLE:
        forms[at] = 2
    elif value.number == STAT_REFERENCE:
        forms[at] = 4
    elif value.at != NULL:
        forms[at] = 3
        values[at] = value.at - base
        lengths[at] = <int32_t>value.value
    else:
        forms[at] = 1
    return True


cdef _int64(vector[int64_t]& cells):
    array = np.empty(cells.size(), dtype=np.int64)
    cdef int64_t[::1] view = array
    if cells.size():
        memcpy(&view[0], cells.data(), cells.size() * sizeof(int64_t))
    return array


cdef _int32(vector[int32_t]& cells):
    array = np.empty(cells.size(), dtype=np.int32)
    cdef int32_t[::1] view = array
    if cells.size():
        memcpy(&view[0], cells.data(), cells.size() * sizeof(int32_t))
    return array


cdef _uint8(vector[uint8_t]& cells):
    array = np.empty(cells.size(), dtype=np.uint8)
    cdef uint8_t[::1] view = array
    if cells.size():
        memcpy(&view[0], cells.data(), cells.size())
    return array
