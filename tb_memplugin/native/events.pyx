# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""The events of a plane as columns: a few of them with their stats, or all of them with a few stats."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.fields cimport Item, item

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
    STAT_REFERENCE = 7

cdef enum Form:
    IS_ABSENT
    IS_NUMBER
    IS_DOUBLE
    IS_TEXT
    IS_REFERENCE

# How a stat's value is to be read; the numbers are part of this module's answer.
ABSENT, NUMBER, DOUBLE, TEXT, REFERENCE = IS_ABSENT, IS_NUMBER, IS_DOUBLE, IS_TEXT, IS_REFERENCE

cdef enum Step:
    BROKEN
    GO_ON
    ENOUGH

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char*, size_t)
        const char* data()
        size_t size()


cdef class _Numbers:
    """What ids stand for. Writers count them from 1, so that all but odd ones are found without hashing."""
    cdef vector[int32_t] small
    cdef unordered_map[int64_t, int32_t] others

    def __init__(self, known):
        small = 1 << 16
        self.small.resize(max((key for key in known if 0 <= key < small), default=-1) + 1, -1)
        for key, number in known.items():
            if 0 <= key < small:
                self.small[key] = number
            else:
                self.others[key] = number

    cdef inline int32_t of(self, int64_t key) noexcept nogil:
        """-1 where it is not known."""
        if 0 <= key < <int64_t>self.small.size():
            return self.small[key]
        if self.others.empty() or not self.others.count(key):
            return -1
        return self.others[key]


cdef struct Stat:
    int64_t metadata
    int64_t value                 # 64 bits of it; of a text its length
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


cdef class _Walk:
    """Through a plane, in file order, line by line and event by event."""
    cdef const unsigned char* base
    cdef int line
    cdef vector[int64_t] name_start, name_length, timestamp, events    # of each line

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        """BROKEN, GO_ON or ENOUGH."""
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


cdef class _Chosen(_Walk):
    """Events of some names, with some of their stats; each stat has a column."""
    cdef _Numbers kinds, columns
    cdef int width
    cdef size_t room              # events that a column, once it occurs, is made to hold
    cdef vector[int64_t] of_line, offset, duration, kind
    cdef vector[vector[int64_t]] values
    cdef vector[vector[uint8_t]] forms
    cdef vector[unordered_map[string_view, int32_t]] texts

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef const unsigned char* q = p
        cdef int64_t metadata = 0
        cdef int kind
        # The metadata id comes first, and most events are not ours: they cost one field.
        while q < end:
            if not item(&q, end, &field):
                return BROKEN
            if field.number == EVENT_METADATA and field.at == NULL:
                metadata = <int64_t>field.value
                break
        kind = self.kinds.of(metadata)
        if kind < 0:
            return GO_ON
        self.of_line.push_back(self.line)
        self.kind.push_back(kind)
        self.offset.push_back(0)
        self.duration.push_back(0)
        if self.kind.size() > self.room:
            self.room = self.kind.size() + self.kind.size() // 4
        while p < end:
            if not item(&p, end, &field):
                return BROKEN
            if field.number == EVENT_OFFSET_PS:
                self.offset[self.offset.size() - 1] = <int64_t>field.value
            elif field.number == EVENT_DURATION_PS:
                self.duration[self.duration.size() - 1] = <int64_t>field.value
            elif field.number == EVENT_STATS and field.at != NULL:
                if not self.stat(field.at, field.at + field.value):
                    return BROKEN
        return GO_ON

    cdef int stat(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Stat stat
        cdef int column
        if not read_stat(p, end, &stat):
            return False
        column = self.columns.of(stat.metadata)
        if column >= 0 and stat.form != IS_ABSENT:
            if self.values[column].size() < self.kind.size():
                self.values[column].resize(self.room)
                self.forms[column].resize(self.room)  # IS_ABSENT
            self.values[column][self.kind.size() - 1] = (
                self.text(column, &stat) if stat.form == IS_TEXT else stat.value
            )
            self.forms[column][self.kind.size() - 1] = stat.form
        return True

    cdef int64_t text(self, int column, const Stat* stat) except -2 nogil:
        """The number of the column's text; the empty one is -1."""
        cdef string_view key = string_view(<const char*>stat.at, stat.value)
        if stat.value == 0:
            return -1
        if not self.texts[column].count(key):
            self.texts[column][key] = <int32_t>self.texts[column].size()
        return self.texts[column][key]


def collect(plane, kinds, columns, int width):
    """Events whose metadata id is in `kinds`, with the stats whose metadata id is in `columns`.

    `kinds`: {event metadata id: kind}; `columns`: {stat metadata id: column below `width`}; several ids may share one.
    Per event, in file order: line, offset and duration in ps, and kind. Per column: for each event how its value is
    to be read, its `form`, and the `value`; of a TEXT that is its number among the column's `texts`, -1
    of an empty one. Per line: its timestamp in ns, its number of events, and its name. ValueError where the bytes are
    no plane.
    """
    cdef _Chosen walk = _Chosen()
    walk.kinds, walk.columns, walk.width = _Numbers(kinds), _Numbers(columns), width
    walk.values.resize(width)
    walk.forms.resize(width)
    walk.texts.resize(width)
    lines = _walked(walk, plane)
    cdef int64_t events = walk.kind.size()
    return {
        **lines, "line": _taken(walk.of_line), "offset_ps": _taken(walk.offset), "duration_ps": _taken(walk.duration),
        "kind": _taken(walk.kind), "form": [_padded_bytes(walk.forms[column], events) for column in range(width)],
        "value": [_padded(walk.values[column], events) for column in range(width)],
        "texts": [_texts(walk.texts[column]) for column in range(width)],
    }


cdef class _Every(_Walk):
    """All events, with the few numbers among their stats that are asked for."""
    cdef _Numbers kinds, columns
    cdef vector[int64_t] offset, duration, value
    cdef vector[int32_t] kind, owner, column

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef Stat stat
        cdef int64_t metadata = 0, offset = 0, duration = 0
        while p < end:
            if not item(&p, end, &field):
                return BROKEN
            if field.number == EVENT_METADATA:
                metadata = <int64_t>field.value
            elif field.number == EVENT_OFFSET_PS:
                offset = <int64_t>field.value
            elif field.number == EVENT_DURATION_PS:
                duration = <int64_t>field.value
            elif field.number == EVENT_STATS and field.at != NULL:
                if not read_stat(field.at, field.at + field.value, &stat):
                    return BROKEN
                if stat.form == IS_NUMBER and self.columns.of(stat.metadata) >= 0:
                    self.owner.push_back(<int32_t>self.kind.size())
                    self.column.push_back(self.columns.of(stat.metadata))
                    self.value.push_back(stat.value)
        self.offset.push_back(offset)
        self.duration.push_back(duration)
        self.kind.push_back(self.kinds.of(metadata))
        return GO_ON


def every(plane, kinds, columns, lines=None):
    """All events, of the whole plane or of the lines that lie at `lines` (Spans), as `offset_ps`, `duration_ps` and `kind`, -1 where their metadata id is not in `kinds`.

    Of their stats, the numbers whose metadata id is in `columns`: `owner` (the event), `column` and `value` of each, in
    file order. Per line: as collect. ValueError where the bytes are no plane.
    """
    cdef _Every walk = _Every()
    walk.kinds, walk.columns = _Numbers(kinds), _Numbers(columns)
    walked = _walked(walk, plane, lines)
    return {
        **walked, "offset_ps": _taken(walk.offset), "duration_ps": _taken(walk.duration),
        "kind": _taken_narrow(walk.kind), "owner": _taken_narrow(walk.owner), "column": _taken_narrow(walk.column),
        "value": _taken(walk.value),
    }


def any_event(plane):
    """Whether there is an event on any line: stops at the first. ValueError where the bytes before it are no plane."""
    return bool((_walked(_Walk(), plane)["line_events"] > 0).any())


cdef _walked(_Walk walk, plane, lines=None):
    """What is known of each line once the plane, or so many of its lines, are read."""
    cdef const unsigned char[::1] view = plane
    cdef const unsigned char* base = b""
    cdef int step = GO_ON
    cdef int64_t start, length
    if view.shape[0]:
        base = &view[0]
    walk.base = base
    if lines is None:
        with nogil:
            step = walk.walk(base, base + view.shape[0])
    else:
        for start, length in zip(lines.start.tolist(), lines.length.tolist()):
            if not 0 <= start <= start + length <= view.shape[0]:
                raise ValueError("a line lies outside of the plane")
            step = walk.one_line(base + start, base + start + length)
            if step != GO_ON:
                break
    if step == BROKEN:
        raise ValueError("an event of the plane is damaged")
    names = Spans(_taken(walk.name_start), _taken(walk.name_length))
    return {
        "line_name": names, "line_timestamp_ns": _taken(walk.timestamp), "line_events": _taken(walk.events),
    }


cdef list _texts(unordered_map[string_view, int32_t]& known):
    found = [b""] * known.size()
    for pair in known:
        found[pair.second] = pair.first.data()[:pair.first.size()]
    return found


# Each gives the memory of the vector back, so that two copies of one column are all that there is at once.

cdef _taken(vector[int64_t]& cells):
    return _padded(cells, cells.size())


cdef _padded(vector[int64_t]& cells, size_t count):
    """So many, with zeros where there are fewer."""
    array = np.zeros(count, dtype=np.int64) if cells.size() < count else np.empty(count, dtype=np.int64)
    cdef int64_t[::1] view = array
    count = min(count, cells.size())
    if count:
        memcpy(&view[0], cells.data(), count * sizeof(int64_t))
    vector[int64_t]().swap(cells)
    return array


cdef _taken_narrow(vector[int32_t]& cells):
    array = np.empty(cells.size(), dtype=np.int32)
    cdef int32_t[::1] view = array
    if cells.size():
        memcpy(&view[0], cells.data(), cells.size() * sizeof(int32_t))
    vector[int32_t]().swap(cells)
    return array


cdef _padded_bytes(vector[uint8_t]& cells, size_t count):
    array = np.zeros(count, dtype=np.uint8) if cells.size() < count else np.empty(count, dtype=np.uint8)
    cdef uint8_t[::1] view = array
    count = min(count, cells.size())
    if count:
        memcpy(&view[0], cells.data(), count)
    vector[uint8_t]().swap(cells)
    return array
